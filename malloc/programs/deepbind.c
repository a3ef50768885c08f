// deepbind LIBRARY...: loads libraries that prefer their own functions, and are found only by the runpath of this
// program. Prints how many bytes may be used of a block of 100 that each of them has allocated, as this program sees it:
// 112 with nbbs, unless a library has another malloc. With -DLIBRARY it is such a library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LIBRARY
void *block_of_100(void) { return malloc(100); }
#else
int main(int arguments, char **argument) {
    for (int n = 1; n < arguments; n++) {
        void *library = dlopen(argument[n], RTLD_NOW | RTLD_DEEPBIND);
        if (!library) {
            printf("%s\n", dlerror());
            continue;
        }
        void *(*block_of_100)(void) = (void *(*)(void))dlsym(library, "block_of_100");
        void *block = block_of_100();
        printf("%zu\n", malloc_usable_size(block));
        free(block);
        dlclose(library);
    }
    return 0;
}
#endif
