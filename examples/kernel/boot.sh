#!/usr/bin/env bash
# boot.sh KERNEL [MEMORY [CPUS]]: boots a kernel in QEMU, its serial port here. Ends with QEMU's status: twice that of
# the kernel, and one.
set -euo pipefail
kernel=$1 memory=${2:-128M} cpus=${3:-4}
exec qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -m "$memory" -smp "$cpus" -kernel "$kernel" \
    -device isa-debug-exit,iobase=0xf4,iosize=4 -serial stdio -display none -no-reboot -nodefaults
