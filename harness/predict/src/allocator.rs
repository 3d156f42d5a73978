//! PyTorch's caching allocator for GPUs, replayed. In: sizes made and freed, in order. Out: the bytes that it holds for tensors,
//! and those that it holds of the device.
//!
//! The rules are those of `c10/cuda/CUDACachingAllocator.cpp` with its default settings, one stream, segments that do not expand;
//! its constants are in `c10/core/CachingDeviceAllocator.h`: `get_round_size`, `get_allocation_size`, `get_free_block` (the
//! smallest that fits, then the lowest address), `should_split`, `try_merge_blocks`, `release_cached_blocks`.

use std::collections::BTreeSet;

const ROUNDING_BYTES: u64 = 512;
/// The largest piece of the small pool.
const SMALL_BYTES: u64 = 1 << 20;
const SMALL_SEGMENT_BYTES: u64 = 2 << 20;
const MEDIUM_SEGMENT_BYTES: u64 = 20 << 20;
/// From here on a piece has a segment of its own.
const LARGE_BYTES: u64 = 10 << 20;
const LARGE_ROUNDING_BYTES: u64 = 2 << 20;

/// More than any device has, and far from overflow.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The allocator of one process on one device.
#[derive(Debug, Clone)]
pub struct CachingAllocator {
    blocks: Vec<Block>,
    vacant: Vec<usize>,
    free_small: BTreeSet<FreeBlock>,
    free_large: BTreeSet<FreeBlock>,
    segments_made: u64,
    limit_bytes: u64,
    /// Of all pieces in use, rounded up: `torch.cuda.memory_allocated`.
    allocated_bytes: u64,
    /// Of all segments: `torch.cuda.memory_reserved`.
    reserved_bytes: u64,
    allocated_peak_bytes: u64,
    reserved_peak_bytes: u64,
}

/// A part of a segment, in use or free, between its neighbours.
#[derive(Debug, Clone)]
struct Block {
    segment: u64,
    offset: u64,
    bytes: u64,
    previous: Option<usize>,
    next: Option<usize>,
    used: bool,
    small: bool,
}

/// Ordered as the allocator searches: by size, then by address. A later segment is at a higher address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FreeBlock {
    bytes: u64,
    segment: u64,
    offset: u64,
    index: usize,
}

/// A piece in use. It is neither copied nor cloned, so it is freed once.
#[derive(Debug)]
#[must_use]
pub struct Held(Option<usize>);

/// The device has no room for a segment, even without the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room for {bytes} more bytes beside {reserved_bytes}")]
pub struct Exhausted {
    pub bytes: u64,
    /// Held of the device at that moment, with nothing more to give back.
    pub reserved_bytes: u64,
}

impl Default for CachingAllocator {
    fn default() -> CachingAllocator {
        CachingAllocator::new()
    }
}

impl CachingAllocator {
    pub fn new() -> CachingAllocator {
        CachingAllocator::with_limit(NO_LIMIT_BYTES)
    }

    /// On a device with so many bytes for tensors. Where a segment does not fit, the cache is given back before that is a failure:
    /// `release_cached_blocks`.
    pub fn with_limit(limit_bytes: u64) -> CachingAllocator {
        CachingAllocator {
            blocks: Vec::new(),
            vacant: Vec::new(),
            free_small: BTreeSet::new(),
            free_large: BTreeSet::new(),
            segments_made: 0,
            limit_bytes: limit_bytes.min(NO_LIMIT_BYTES),
            allocated_bytes: 0,
            reserved_bytes: 0,
            allocated_peak_bytes: 0,
            reserved_peak_bytes: 0,
        }
    }

    /// `torch.cuda.max_memory_allocated`.
    pub fn allocated_peak_bytes(&self) -> u64 {
        self.allocated_peak_bytes
    }

    /// `torch.cuda.max_memory_reserved`.
    pub fn reserved_peak_bytes(&self) -> u64 {
        self.reserved_peak_bytes
    }

    /// `torch.cuda.reset_peak_memory_stats`.
    pub fn reset_peaks(&mut self) {
        (self.allocated_peak_bytes, self.reserved_peak_bytes) = (self.allocated_bytes, self.reserved_bytes);
    }

    pub fn allocate(&mut self, bytes: u64) -> Result<Held, Exhausted> {
        // A tensor without elements has no block.
        if bytes == 0 {
            return Ok(Held(None));
        }
        let asked = bytes;
        // What no device has is not rounded up: that might overflow.
        let bytes = bytes.min(NO_LIMIT_BYTES + 1).next_multiple_of(ROUNDING_BYTES);
        let Some(found) = self.smallest_free(bytes).or_else(|| self.new_segment(bytes)) else {
            return Err(Exhausted { bytes: asked, reserved_bytes: self.reserved_bytes });
        };
        let free = self.as_free(found);
        self.free_of(self.blocks[found].small).remove(&free);
        self.split(found, bytes);
        self.blocks[found].used = true;
        self.allocated_bytes += self.blocks[found].bytes;
        self.allocated_peak_bytes = self.allocated_peak_bytes.max(self.allocated_bytes);
        Ok(Held(Some(found)))
    }

    pub fn free(&mut self, held: Held) {
        let Held(Some(mut index)) = held else { return };
        self.allocated_bytes -= self.blocks[index].bytes;
        self.blocks[index].used = false;
        if let Some(next) = self.blocks[index].next.filter(|&next| !self.blocks[next].used) {
            self.merge(index, next);
        }
        if let Some(previous) = self.blocks[index].previous.filter(|&previous| !self.blocks[previous].used) {
            self.merge(previous, index);
            index = previous;
        }
        let free = self.as_free(index);
        self.free_of(self.blocks[index].small).insert(free);
    }

    /// Gives back the segments of which nothing is in use: `torch.cuda.empty_cache`.
    pub fn empty_cache(&mut self) {
        let whole = |all: &BTreeSet<FreeBlock>, blocks: &[Block]| -> Vec<FreeBlock> {
            let unsplit = |free: &&FreeBlock| blocks[free.index].previous.is_none() && blocks[free.index].next.is_none();
            all.iter().filter(unsplit).copied().collect()
        };
        for small in [true, false] {
            let free = if small { &self.free_small } else { &self.free_large };
            for one in whole(free, &self.blocks) {
                self.free_of(small).remove(&one);
                self.vacant.push(one.index);
                self.reserved_bytes -= one.bytes;
            }
        }
    }

    fn smallest_free(&self, bytes: u64) -> Option<usize> {
        let free = if bytes <= SMALL_BYTES { &self.free_small } else { &self.free_large };
        free.range(FreeBlock { bytes, segment: 0, offset: 0, index: 0 }..).next().map(|free| free.index)
    }

    fn new_segment(&mut self, bytes: u64) -> Option<usize> {
        let small = bytes <= SMALL_BYTES;
        let segment_bytes = match bytes {
            _ if small => SMALL_SEGMENT_BYTES,
            ..LARGE_BYTES => MEDIUM_SEGMENT_BYTES,
            _ => bytes.next_multiple_of(LARGE_ROUNDING_BYTES),
        };
        if self.reserved_bytes + segment_bytes > self.limit_bytes {
            self.empty_cache();
        }
        if self.reserved_bytes + segment_bytes > self.limit_bytes {
            return None;
        }
        self.reserved_bytes += segment_bytes;
        self.reserved_peak_bytes = self.reserved_peak_bytes.max(self.reserved_bytes);
        self.segments_made += 1;
        let (segment, offset) = (self.segments_made, 0);
        let index = self.place(Block { segment, offset, bytes: segment_bytes, previous: None, next: None, used: false, small });
        let free = self.as_free(index);
        self.free_of(small).insert(free);
        Some(index)
    }

    /// What the piece does not need becomes free, unless it is too little to be of use.
    fn split(&mut self, index: usize, bytes: u64) {
        let Block { segment, offset, bytes: all, next, small, .. } = self.blocks[index];
        let left = all - bytes;
        if left == 0 || (!small && left <= SMALL_BYTES) {
            return;
        }
        let rest = Block { segment, offset: offset + bytes, bytes: left, previous: Some(index), next, used: false, small };
        let rest = self.place(rest);
        (self.blocks[index].bytes, self.blocks[index].next) = (bytes, Some(rest));
        if let Some(next) = next {
            self.blocks[next].previous = Some(rest);
        }
        let free = self.as_free(rest);
        self.free_of(small).insert(free);
    }

    /// The second block becomes part of the first, its neighbour below.
    fn merge(&mut self, first: usize, second: usize) {
        for index in [first, second] {
            let free = self.as_free(index);
            self.free_of(self.blocks[index].small).remove(&free);
        }
        let Block { bytes, next, .. } = self.blocks[second];
        self.blocks[first].bytes += bytes;
        self.blocks[first].next = next;
        if let Some(next) = next {
            self.blocks[next].previous = Some(first);
        }
        self.vacant.push(second);
    }

    fn place(&mut self, block: Block) -> usize {
        match self.vacant.pop() {
            Some(index) => {
                self.blocks[index] = block;
                index
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() - 1
            }
        }
    }

    fn as_free(&self, index: usize) -> FreeBlock {
        let Block { segment, offset, bytes, .. } = self.blocks[index];
        FreeBlock { bytes, segment, offset, index }
    }

    fn free_of(&mut self, small: bool) -> &mut BTreeSet<FreeBlock> {
        if small { &mut self.free_small } else { &mut self.free_large }
    }
}

#[cfg(test)]
mod tests;
