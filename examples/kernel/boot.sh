#!/usr/bin/env bash
# boot.sh KERNEL [MEMORY [CPUS]]: boots a kernel in QEMU, with its serial port on this terminal. Ends with QEMU's
# status: twice that of the kernel, plus one.
set -euo pipefail
kernel=$1 memory=${2:-128M} cpus=${3:-4}
case $kernel in
*riscv64*) machine=(qemu-system-riscv64 -machine virt) ;;
*) machine=(qemu-system-x86_64 -machine q35 -cpu max -device "isa-debug-exit,iobase=0xf4,iosize=4") ;;
esac
exec "${machine[@]}" -accel tcg,thread=multi -m "$memory" -smp "$cpus" -kernel "$kernel" \
    -serial stdio -display none -no-reboot -nodefaults
