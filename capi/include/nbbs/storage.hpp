/* Memory that is given. Part of nbbs.hpp. */

#ifndef NBBS_STORAGE_HPP
#define NBBS_STORAGE_HPP

#include <cstddef>

namespace nbbs {

/// Memory for all that a pool or heap has, `bytes_for` of which says how much that is; or by which a heap grows.
struct storage {
    void* memory;
    std::size_t bytes;
};

}  // namespace nbbs

#endif
