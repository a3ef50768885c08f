/* What a static program on x86-64 Linux begins with when nothing is linked to it. */

int program(void);
__attribute__((noreturn)) void start_on_a_stack(void);

__attribute__((noreturn)) void start_on_a_stack(void) {
    const long exit_group = 231;
    long status = program();
    __asm__ volatile("syscall" : : "a"(exit_group), "D"(status) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    and $-16, %rsp\n"
        "    call start_on_a_stack\n");
