# From what the firmware leaves (supervisor mode, no translation) to the kernel's tables and a stack.

.section .text.boot, "ax"
.globl boot
boot:                            # a0: the CPU's id, a1: the address of the device tree
    la sp, boot_stack_end
    call use_root
    call boot_cpu
    unimp

.globl started
started:                         # a0: the CPU's id, a1: the top of its stack, as a physical address
    mv sp, a1
    call use_root
    call started_cpu
    unimp

use_root:
    la t0, boot_root
    srli t0, t0, 12
    li t1, 8 << 60               # three levels: Sv39
    or t0, t0, t1
    sfence.vma
    csrw satp, t0
    sfence.vma
    ret

# Where an interrupt or an exception comes: saves what a function may change, calls the handler, and returns.
.balign 4
.globl trap_entry
trap_entry:
    addi sp, sp, -160
    sd ra, 0(sp)
    sd t0, 8(sp)
    sd t1, 16(sp)
    sd t2, 24(sp)
    sd t3, 32(sp)
    sd t4, 40(sp)
    sd t5, 48(sp)
    sd t6, 56(sp)
    sd a0, 64(sp)
    sd a1, 72(sp)
    sd a2, 80(sp)
    sd a3, 88(sp)
    sd a4, 96(sp)
    sd a5, 104(sp)
    sd a6, 112(sp)
    sd a7, 120(sp)
    csrr t0, sepc                # a handler that is interrupted loses these
    csrr t1, sstatus
    sd t0, 128(sp)
    sd t1, 136(sp)
    csrr a0, scause
    mv a1, t0
    csrr a2, stval
    call trap
    ld t0, 128(sp)
    ld t1, 136(sp)
    csrw sepc, t0
    csrw sstatus, t1
    ld ra, 0(sp)
    ld t0, 8(sp)
    ld t1, 16(sp)
    ld t2, 24(sp)
    ld t3, 32(sp)
    ld t4, 40(sp)
    ld t5, 48(sp)
    ld t6, 56(sp)
    ld a0, 64(sp)
    ld a1, 72(sp)
    ld a2, 80(sp)
    ld a3, 88(sp)
    ld a4, 96(sp)
    ld a5, 104(sp)
    ld a6, 112(sp)
    ld a7, 120(sp)
    addi sp, sp, 160
    sret

# 256 GiB in pages of 1 GiB, where they are and once more in the direct map.
.section .data.boot, "aw"
.balign 4096
.globl boot_root
boot_root:
    .rept 2
    .set page, 0
    .rept 256
    .quad (page << 28) + 0xcf    # valid, read, write, execute, accessed, dirty
    .set page, page + 1
    .endr
    .endr

.section .bss.boot, "aw", @nobits
.balign 16
    .skip 65536
boot_stack_end:
