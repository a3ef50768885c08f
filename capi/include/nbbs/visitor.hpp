/* C++ callables where C expects a function and a context. Part of nbbs.hpp. */

#ifndef NBBS_VISITOR_HPP
#define NBBS_VISITOR_HPP

#include "result.hpp"

#if __STDC_HOSTED__ && NBBS_EXCEPTIONS
#include <exception>
#endif

namespace nbbs::detail {

/// Calls `Callable` on a `T*` of C's. No exception may pass through the library: the first is kept, ends the visits, and
/// is thrown when C has returned.
template <class Callable>
class visitor {
public:
    explicit visitor(Callable& callable) noexcept : callable_(callable) {}

    template <class T>
    static void visit(void* context, T* what) {
        static_cast<visitor*>(context)->call(what);
    }

    void rethrow() {
#if __STDC_HOSTED__ && NBBS_EXCEPTIONS
        if (thrown_) {
            std::rethrow_exception(thrown_);
        }
#endif
    }

private:
    template <class T>
    void call(T* what) {
#if __STDC_HOSTED__ && NBBS_EXCEPTIONS
        if (thrown_) {
            return;
        }
        try {
            callable_(what);
        } catch (...) {
            thrown_ = std::current_exception();
        }
#else
        callable_(what);
#endif
    }

    Callable& callable_;
#if __STDC_HOSTED__ && NBBS_EXCEPTIONS
    std::exception_ptr thrown_{};
#endif
};

/// Has a function of C call `visit` with every `T&` that a handle leads to. What `visit` throws ends the walk.
template <class Handle, class T, class Visit>
void walk(nbbs_code (*function)(const Handle*, void (*)(void*, T*), void*, nbbs_error*), const Handle* handle,
          Visit& visit) {
    const auto one = [&visit](T* what) { visit(*what); };
    visitor<decltype(one)> visits(one);
    const auto walked = run(function, handle, &visits.template visit<T>, static_cast<void*>(&visits));
    visits.rethrow();
    walked.value();
}

}  // namespace nbbs::detail

#endif
