//! Feature `virtio-drivers`: memory that drivers share with their devices.

use core::marker::PhantomData;
use core::ptr::NonNull;

use virtio_drivers::{BufferDirection, Hal, PhysAddr};

use crate::{FRAME_SIZE, Mapped};

/// The parts of the machine that [`Dma`] needs.
///
/// # Safety
/// - `memory` returns the same memory each time, devices reach it at its physical addresses, and others neither release
///   nor free a page of it while a driver uses it;
/// - `mmio` fulfils what [`Hal::mmio_phys_to_virt`] requires of implementations.
pub unsafe trait Machine {
    /// Returns the source of DMA memory. Safe code may call this, as a [`Mapped`] frees and adds memory only by unsafe
    /// calls.
    fn memory() -> Mapped<'static>;

    /// Returns where the registers of a device are mapped.
    ///
    /// # Safety
    /// That of [`Hal::mmio_phys_to_virt`].
    unsafe fn mmio(address: PhysAddr, size: usize) -> NonNull<u8>;
}

/// A [`Hal`] whose queues and buffers lie in the arena. A buffer elsewhere, such as on a stack, is shared through a
/// copy in the arena.
///
/// # Panics
/// `share` panics if there is no room for such a copy: the trait has no other way to report it.
///
/// ```
/// use nbbs_adapters::virtio::{Dma, Machine};
/// use virtio_drivers::device::blk::VirtIOBlk;
/// use virtio_drivers::transport::Transport;
///
/// fn first_sector<M: Machine, T: Transport>(transport: T) -> Result<[u8; 512], virtio_drivers::Error> {
///     let mut disk = VirtIOBlk::<Dma<M>, T>::new(transport)?;
///     let mut sector = [0; 512];
///     disk.read_blocks(0, &mut sector)?;
///     Ok(sector)
/// }
/// ```
#[derive(Debug)]
pub struct Dma<M>(PhantomData<M>);

// SAFETY: the pointer of `dma_alloc` is to frames that were just allocated, zeroed and mapped (the contract of
// `Mapped::new`), and are nobody else's until `dma_dealloc`; that of `mmio_phys_to_virt` is the machine's, which
// keeps the same contract.
unsafe impl<M: Machine> Hal for Dma<M> {
    fn dma_alloc(pages: usize, _direction: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let none = (0, NonNull::dangling());
        let memory = M::memory();
        let first = memory.alloc_zeroed(pages as u64).unwrap_or(none);
        if first.0 != 0 || first == none {
            return first;
        }
        // Address 0 means a refusal, so another run is allocated while this one is held.
        let second = memory.alloc_zeroed(pages as u64).unwrap_or(none);
        let _ = memory.inner().free(0, pages as u64);
        second
    }

    unsafe fn dma_dealloc(paddr: PhysAddr, _vaddr: NonNull<u8>, pages: usize) -> i32 {
        if M::memory().inner().free(paddr, pages as u64).is_ok() { 0 } else { -1 }
    }

    unsafe fn mmio_phys_to_virt(paddr: PhysAddr, size: usize) -> NonNull<u8> {
        // SAFETY: the caller promises what the machine requires.
        unsafe { M::mmio(paddr, size) }
    }

    unsafe fn share(buffer: NonNull<[u8]>, direction: BufferDirection) -> PhysAddr {
        let memory = M::memory();
        if let Some(address) = memory.address_of(buffer.cast()) {
            return address;
        }
        let (address, copy) = match memory.alloc_zeroed(frames_of(buffer)) {
            Ok(copy) => copy,
            Err(error) => panic!("no copy of {} bytes for a device: {error}", buffer.len()),
        };
        if direction != BufferDirection::DeviceToDriver {
            // SAFETY: the buffer is valid and nobody else's now, says the caller; the copy was just allocated, so
            // they do not overlap, and it has as many bytes at least.
            unsafe { buffer.cast().copy_to_nonoverlapping(copy, buffer.len()) };
        }
        address
    }

    unsafe fn unshare(paddr: PhysAddr, buffer: NonNull<[u8]>, direction: BufferDirection) {
        let memory = M::memory();
        let Some(copy) = memory.pointer_to(paddr) else { return };
        if memory.address_of(buffer.cast()).is_some() {
            return;
        }
        if direction != BufferDirection::DriverToDevice {
            // SAFETY: `share` allocated the copy for this buffer, says the caller, and it is not freed yet; the buffer
            // lies elsewhere, and nobody else uses it now.
            unsafe { copy.copy_to_nonoverlapping(buffer.cast(), buffer.len()) };
        }
        let _ = memory.inner().free(paddr, frames_of(buffer));
    }
}

fn frames_of(buffer: NonNull<[u8]>) -> u64 {
    (buffer.len() as u64).div_ceil(FRAME_SIZE)
}
