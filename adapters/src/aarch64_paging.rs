//! Feature `aarch64-paging`: page tables from the arena.

use core::ptr::NonNull;

use aarch64_paging::descriptor::{PagingAttributes, PhysicalAddress};
use aarch64_paging::paging::{PageTable, Translation};
use nbbs::sync::Word;

use crate::Mapped;

/// # Panics
/// `allocate_table` panics if no frame is free, `physical_to_virtual` if the address is not in the region: the trait
/// has no other way to report it. Nothing has changed, and no step of the arena is half done.
impl<A: PagingAttributes, W: Word> Translation<A> for Mapped<'_, W> {
    fn allocate_table(&mut self) -> (NonNull<PageTable<A>>, PhysicalAddress) {
        match self.alloc_zeroed(1) {
            Ok((address, table)) => (table.cast(), PhysicalAddress(address as usize)),
            Err(error) => panic!("no page table: {error}"),
        }
    }

    unsafe fn deallocate_table(&mut self, page_table: NonNull<PageTable<A>>) {
        if let Some(address) = self.address_of(page_table.cast()) {
            // A table that is not allocated is left alone.
            let _ = self.inner().free(address, 1);
        }
    }

    fn physical_to_virtual(&self, pa: PhysicalAddress) -> NonNull<PageTable<A>> {
        match self.pointer_to(pa.0 as u64) {
            Some(table) => table.cast(),
            None => panic!("page table at {pa} outside {:#x?}", self.addresses()),
        }
    }
}
