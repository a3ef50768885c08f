//! DMA memory: zeroed, never at address 0, and copies of buffers that lie elsewhere.

mod support;

use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};

use nbbs_adapters::Mapped;
use nbbs_adapters::virtio::{Dma, Machine};
use support::{DIRT, mapped, region};
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

struct Host;

const FRAMES: u64 = 64;
/// Tests that count what is in use take turns.
static TURN: Mutex<()> = Mutex::new(());

// SAFETY: the memory is always the same and only the arena's; there are no devices.
unsafe impl Machine for Host {
    fn memory() -> Mapped<'static> {
        static MEMORY: OnceLock<Mapped<'static>> = OnceLock::new();
        *MEMORY.get_or_init(|| mapped(region(FRAMES, 0)))
    }

    unsafe fn mmio(address: PhysAddr, _size: usize) -> NonNull<u8> {
        NonNull::new(std::ptr::without_provenance_mut(address as usize | 1 << 40)).unwrap()
    }
}

fn used() -> u64 {
    Host::memory().stats().used_units
}

fn bytes_at(address: PhysAddr, len: usize) -> &'static mut [u8] {
    let memory = Host::memory().pointer_to(address).unwrap();
    // SAFETY: the caller has allocated the memory, and plays the device.
    unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), len) }
}

#[test]
fn bytes_have_addresses_as_far_as_they_are_mapped() {
    let base = 1 << 20;
    let memory = mapped(region(FRAMES, base));
    let end = base + FRAMES * 4096;
    assert_eq!((memory.pointer_to(base - 1), memory.pointer_to(end)), (None, None));
    let last = memory.pointer_to(end - 1).unwrap();
    assert_eq!(memory.address_of(last), Some(end - 1));
    for behind in [1, 4096] {
        let at = NonNull::new(last.as_ptr().wrapping_add(behind)).unwrap();
        assert_eq!(memory.address_of(at), None, "{behind} behind the last");
    }
}

#[test]
fn pages_are_zeroed_and_never_at_address_zero() {
    let _turn = TURN.lock();
    for pages in [1, 2, 3, 16, 32] {
        let mut held = Vec::new();
        loop {
            let (address, pointer) = Dma::<Host>::dma_alloc(pages, BufferDirection::Both);
            if address == 0 {
                break;
            }
            assert_eq!(Host::memory().pointer_to(address), Some(pointer));
            assert_eq!(Host::memory().address_of(pointer), Some(address));
            let bytes = bytes_at(address, pages * 4096);
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(DIRT);
            held.push((address, pointer));
        }
        // All that fit into two words of 32, save for the one at address 0.
        assert!(held.len() + 1 >= 2 * (32 / pages));
        for (address, pointer) in held {
            // SAFETY: allocated above, by that many pages.
            assert_eq!(unsafe { Dma::<Host>::dma_dealloc(address, pointer, pages) }, 0);
            // SAFETY: a fault of a driver: refused.
            assert_eq!(unsafe { Dma::<Host>::dma_dealloc(address, pointer, pages) }, -1);
        }
        assert_eq!(used(), 0);
    }
}

#[test]
fn a_buffer_elsewhere_is_shared_through_a_copy() {
    let _turn = TURN.lock();
    let cases = [
        (BufferDirection::DriverToDevice, true, false),
        (BufferDirection::DeviceToDriver, false, true),
        (BufferDirection::Both, true, true),
    ];
    for (direction, seen_by_device, seen_by_driver) in cases {
        let mut buffer = vec![7_u8; 5000];
        let shared = NonNull::from(&mut buffer[..]);
        // SAFETY: nobody else uses the buffer.
        let address = unsafe { Dma::<Host>::share(shared, direction) };
        assert_eq!(used(), 2);
        let device = bytes_at(address, 5000);
        assert_eq!(device.iter().all(|&byte| byte == 7), seen_by_device);
        device.fill(9);
        // SAFETY: shared above.
        unsafe { Dma::<Host>::unshare(address, shared, direction) };
        assert_eq!(buffer.iter().all(|&byte| byte == 9), seen_by_driver);
        assert_eq!(used(), 0);
    }
}

#[test]
fn a_buffer_in_the_arena_is_shared_as_it_is() {
    let _turn = TURN.lock();
    let (address, pointer) = Dma::<Host>::dma_alloc(1, BufferDirection::Both);
    let buffer =
        NonNull::slice_from_raw_parts(NonNull::from(&mut bytes_at(address, 4096)[100]), 50);
    // SAFETY: nobody else uses the buffer.
    let shared = unsafe { Dma::<Host>::share(buffer, BufferDirection::Both) };
    assert_eq!(shared, address + 100);
    // SAFETY: shared above.
    unsafe { Dma::<Host>::unshare(shared, buffer, BufferDirection::Both) };
    assert_eq!(used(), 1);
    // SAFETY: allocated above.
    assert_eq!(unsafe { Dma::<Host>::dma_dealloc(address, pointer, 1) }, 0);
    assert_eq!(used(), 0);
}

#[test]
fn registers_are_where_the_machine_says() {
    // SAFETY: there is no device, and nobody follows the pointer.
    let registers = unsafe { Dma::<Host>::mmio_phys_to_virt(0xfe00_0000, 0x1000) };
    assert_eq!(registers.addr().get(), 1 << 40 | 0xfe00_0000);
}
