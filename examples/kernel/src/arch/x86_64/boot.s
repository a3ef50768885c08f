# From what the boot loader leaves (PVH: 32 bits, no paging) and from what a started CPU is (16 bits) to 64 bits.

.set DIRECT_MAP_SLOT, 256        # of the top table: 0xffff_8000_0000_0000
.set HUGE, 0x83                  # present, writable, 2 MiB
.set TABLE, 0x03                 # present, writable

# Where the loader finds the entry: XEN_ELFNOTE_PHYS32_ENTRY.
.section .note.pvh, "a", @note
.balign 4
.long 4, 8, 18
.asciz "Xen"
.quad pvh_start

.section .text.boot, "ax"
.code32
.globl pvh_start
pvh_start:                       # ebx: the address of the start info
    cli
    cld
    movl $boot_root, %eax
    movl %eax, %cr3
    movl $0x20, %eax             # PAE
    movl %eax, %cr4
    movl $0xc0000080, %ecx       # EFER: long mode, no-execute
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl $0x80010011, %eax       # paging, write protection, protection
    movl %eax, %cr0
    lgdt gdt_pointer
    ljmp $8, $boot_64

.code64
boot_64:
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movq $boot_stack_end, %rsp
    movl %ebx, %edi
    xorl %ebp, %ebp
    call boot_cpu
    ud2

# Copied to a frame below 1 MiB, where a CPU starts in 16 bits.
.globl trampoline, trampoline_end
.code16
trampoline:
    cli
    movw %cs, %ax
    movw %ax, %ds
    lgdtl (trampoline_gdt - trampoline)
    movl $boot_root, %eax
    movl %eax, %cr3
    movl $0x20, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl $0x80010011, %eax
    movl %eax, %cr0
    ljmpl $8, $started_64
trampoline_gdt:
    .word 15
    .long gdt
trampoline_end:

.code64
started_64:
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movq KERNEL_ROOT(%rip), %rax
    movq %rax, %cr3
    movq STARTING_STACK(%rip), %rsp
    xorl %ebp, %ebp
    call started_cpu
    ud2

.section .rodata.boot, "a"
.balign 8
gdt:
    .quad 0
    .quad 0x00af9b000000ffff     # code, 64 bits
gdt_pointer:
    .word 15
    .quad gdt

# The first 4 GiB, where they are and once more in the direct map: until the kernel builds its own tables from frames.
.section .data.boot, "aw"
.balign 4096
boot_root:
    .quad boot_gibibytes + TABLE
    .fill DIRECT_MAP_SLOT - 1, 8, 0
    .quad boot_gibibytes + TABLE
    .fill 511 - DIRECT_MAP_SLOT, 8, 0
boot_gibibytes:
    .quad boot_pages + TABLE
    .quad boot_pages + 0x1000 + TABLE
    .quad boot_pages + 0x2000 + TABLE
    .quad boot_pages + 0x3000 + TABLE
    .fill 508, 8, 0
boot_pages:
    .set page, 0
    .rept 2048
    .quad (page << 21) + HUGE
    .set page, page + 1
    .endr

.section .bss.boot, "aw", @nobits
.balign 16
    .skip 65536
boot_stack_end:
