use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// The blocks of each segment in the order of their addresses, by following the neighbours.
fn segments(allocator: &CachingAllocator) -> Vec<Vec<Block>> {
    let gone: BTreeSet<usize> = allocator.vacant.iter().copied().collect();
    let first = |(index, block): &(usize, &Block)| !gone.contains(index) && block.previous.is_none();
    let firsts = allocator.blocks.iter().enumerate().filter(first);
    let mut all = Vec::new();
    for (index, _) in firsts {
        let mut blocks = vec![allocator.blocks[index].clone()];
        while let Some(next) = blocks.last().and_then(|last| last.next) {
            blocks.push(allocator.blocks[next].clone());
        }
        all.push(blocks);
    }
    all
}

/// No overlap, no gap, no two free neighbours; the sums are what they say; every free block is found.
fn check(allocator: &CachingAllocator) {
    let (mut allocated, mut reserved, mut free) = (0, 0, 0);
    for blocks in segments(allocator) {
        let mut end = 0;
        for (i, block) in blocks.iter().enumerate() {
            assert_eq!(block.offset, end, "a gap or an overlap");
            assert!(block.bytes > 0);
            end += block.bytes;
            allocated += if block.used { block.bytes } else { 0 };
            free += usize::from(!block.used);
            assert!(block.used || i == 0 || blocks[i - 1].used, "two free neighbours");
        }
        reserved += end;
    }
    assert_eq!(allocated, allocator.allocated_bytes);
    assert_eq!(reserved, allocator.reserved_bytes);
    assert_eq!(free, allocator.free_small.len() + allocator.free_large.len());
    assert!(allocator.reserved_bytes >= allocator.allocated_bytes);
    assert!(allocator.reserved_peak_bytes() >= allocator.reserved_bytes);
}

#[test]
fn sizes_are_rounded_and_segments_are_as_pytorchs() {
    for (bytes, allocated, reserved) in [
        (0, 0, 0),
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        // More than the small pool's largest piece: rounded to 512, from a segment of 20 MiB.
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 1, 10 * MIB, 10 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        // What is left over, 1 MiB, is too little to be split off: it counts as allocated.
        (11 * MIB, 12 * MIB, 12 * MIB),
        (12 * MIB, 12 * MIB, 12 * MIB),
    ] {
        let mut allocator = CachingAllocator::new();
        let held = allocator.allocate(bytes).unwrap();
        assert_eq!((allocator.allocated_bytes, allocator.reserved_bytes), (allocated, reserved), "{bytes} bytes");
        allocator.free(held);
        assert_eq!((allocator.allocated_bytes, allocator.reserved_bytes), (0, reserved), "{bytes} bytes");
    }
}

#[test]
fn the_smallest_free_block_that_fits_is_taken() {
    let mut allocator = CachingAllocator::new();
    let [a, b, c] = [30, 20, 40].map(|mib| allocator.allocate(mib * MIB).unwrap());
    for held in [a, b, c] {
        allocator.free(held);
    }
    let _held = allocator.allocate(19 * MIB).unwrap();
    assert_eq!(allocator.reserved_bytes, 90 * MIB, "no new segment");
    // 1 MiB left over is not split off.
    assert_eq!(allocator.allocated_bytes, 20 * MIB);
    let _other = allocator.allocate(25 * MIB).unwrap();
    assert_eq!(allocator.allocated_bytes, 45 * MIB, "the segment of 30, of which 5 are free");
}

#[test]
fn near_the_limit_the_cache_is_given_back() {
    let mut allocator = CachingAllocator::with_limit(100 * MIB);
    let small = allocator.allocate(60 * MIB).unwrap();
    allocator.free(small);
    let held = allocator.allocate(80 * MIB).unwrap();
    assert_eq!(allocator.reserved_bytes, 80 * MIB);
    assert_eq!(allocator.allocate(40 * MIB).unwrap_err(), Exhausted { bytes: 40 * MIB, reserved_bytes: 80 * MIB });
    allocator.free(held);
    assert!(allocator.allocate(u64::MAX).is_err());
    check(&allocator);
}

#[test]
fn an_emptied_cache_keeps_segments_that_are_in_use() {
    let mut allocator = CachingAllocator::new();
    let (kept, gone) = (allocator.allocate(2 * MIB).unwrap(), allocator.allocate(30 * MIB).unwrap());
    allocator.free(gone);
    allocator.empty_cache();
    allocator.reset_peaks();
    assert_eq!((allocator.reserved_bytes, allocator.reserved_peak_bytes()), (20 * MIB, 20 * MIB));
    check(&allocator);
    allocator.free(kept);
    allocator.empty_cache();
    assert_eq!(allocator.reserved_bytes, 0);
    assert!(segments(&allocator).is_empty());
}

/// The same rules without any index: every search goes through all blocks.
#[derive(Default)]
struct Plain {
    /// Whether small; then bytes and whether used.
    segments: Vec<(bool, Vec<(u64, bool)>)>,
}

impl Plain {
    /// Segment and offset.
    fn allocate(&mut self, bytes: u64) -> (usize, u64) {
        let bytes = bytes.div_ceil(512) * 512;
        let small = bytes <= MIB;
        let mut best: Option<(u64, usize, usize)> = None;
        for (s, (_, blocks)) in self.segments.iter().enumerate().filter(|(_, (pool, _))| *pool == small) {
            for (b, &(size, used)) in blocks.iter().enumerate() {
                if !used && size >= bytes && best.is_none_or(|(least, ..)| size < least) {
                    best = Some((size, s, b));
                }
            }
        }
        let (size, s, b) = best.unwrap_or_else(|| {
            let size = if small {
                2 * MIB
            } else if bytes < 10 * MIB {
                20 * MIB
            } else {
                bytes.div_ceil(2 * MIB) * 2 * MIB
            };
            self.segments.push((small, vec![(size, false)]));
            (size, self.segments.len() - 1, 0)
        });
        let blocks = &mut self.segments[s].1;
        let left = size - bytes;
        if if small { left >= 512 } else { left > MIB } {
            blocks[b] = (bytes, true);
            blocks.insert(b + 1, (left, false));
        } else {
            blocks[b].1 = true;
        }
        (s, blocks[..b].iter().map(|(size, _)| size).sum())
    }

    fn free(&mut self, (s, offset): (usize, u64)) {
        let blocks = &mut self.segments[s].1;
        let (mut b, mut at) = (0, 0);
        while at < offset {
            at += blocks[b].0;
            b += 1;
        }
        blocks[b].1 = false;
        if blocks.get(b + 1).is_some_and(|next| !next.1) {
            blocks[b].0 += blocks.remove(b + 1).0;
        }
        if b > 0 && !blocks[b - 1].1 {
            blocks[b - 1].0 += blocks.remove(b).0;
        }
    }

    fn sums(&self) -> (u64, u64) {
        let all = || self.segments.iter().flat_map(|(_, blocks)| blocks);
        (all().filter(|(_, used)| *used).map(|(size, _)| size).sum(), all().map(|(size, _)| size).sum())
    }
}

/// What to do next: ask for so many bytes, or free one of those in use.
#[derive(Debug, Clone)]
enum Step {
    Allocate(u64),
    Free(proptest::sample::Index),
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    // A few sizes again and again, as in training, and any others.
    let bytes = prop_oneof![
        1u64..3000,
        1u64..4 * MIB,
        1u64..64 * MIB,
        proptest::sample::select(vec![512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 3_211_264]),
    ];
    let step = prop_oneof![bytes.prop_map(Step::Allocate), any::<proptest::sample::Index>().prop_map(Step::Free)];
    proptest::collection::vec(step, most / 2..most)
}

/// More than a million events in all, from a seed.
#[test]
fn no_list_of_events_makes_an_overlap_or_a_leak() {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for list in 0..600 {
        let mut allocator = CachingAllocator::new();
        let mut held = Vec::new();
        // Some lists hold many pieces at once, others few.
        let crowd = 1 + random(200) as usize;
        for i in 0..2_000 {
            if held.is_empty() || (held.len() < crowd && random(3) > 0) {
                // Of all sizes, from bytes to 64 MiB, each as often.
                let scale = random(27);
                held.push(allocator.allocate(1 + random(1 << scale)).unwrap());
            } else {
                let one = held.swap_remove(random(held.len() as u64) as usize);
                allocator.free(one);
            }
            assert!(allocator.reserved_bytes >= allocator.allocated_bytes);
            if i % 400 == 0 {
                check(&allocator);
            }
        }
        check(&allocator);
        for one in held {
            allocator.free(one);
        }
        check(&allocator);
        assert_eq!(allocator.allocated_bytes, 0, "list {list}");
        assert!(segments(&allocator).iter().all(|blocks| blocks.len() == 1), "one block per segment, list {list}");
        allocator.empty_cache();
        assert_eq!(allocator.reserved_bytes, 0, "list {list}");
    }
}

/// Random lists on a device that is too small for most of them.
#[test]
fn whatever_fits_within_a_limit_stays_within_it_and_fits_without_one() {
    let mut state = 7u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (mut given_back, mut failed) = (0, 0);
    for list in 0..300 {
        let limit = (64 + random(960)) * MIB;
        let (mut within, mut without) = (CachingAllocator::with_limit(limit), CachingAllocator::new());
        let mut held = Vec::new();
        for _ in 0..1_000 {
            if held.is_empty() || random(3) > 0 {
                let scale = random(27);
                let bytes = 1 + random(1 << scale);
                let reserved = within.reserved_bytes;
                match within.allocate(bytes) {
                    Ok(one) => held.push((one, without.allocate(bytes).expect("it fits without a limit"))),
                    Err(Exhausted { bytes: asked, reserved_bytes }) => {
                        failed += 1;
                        assert_eq!(asked, bytes);
                        assert_eq!(reserved_bytes, within.reserved_bytes, "nothing more is left to give back");
                        assert!(segments(&within).iter().all(|blocks| blocks.iter().any(|block| block.used)));
                        check(&within);
                    }
                }
                given_back += u64::from(within.reserved_bytes < reserved);
            } else {
                let (one, other) = held.swap_remove(random(held.len() as u64) as usize);
                within.free(one);
                without.free(other);
            }
            assert!(within.reserved_bytes <= limit && within.reserved_peak_bytes() <= limit, "list {list}");
            assert!(within.reserved_bytes >= within.allocated_bytes);
        }
        check(&within);
    }
    assert!(given_back > 200 && failed > 1_000, "the limits were tried: {given_back}, {failed}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_holds_what_a_plain_search_through_all_blocks_holds(steps in steps(300)) {
        let (mut allocator, mut plain) = (CachingAllocator::new(), Plain::default());
        let mut held = Vec::new();
        for step in &steps {
            match step {
                Step::Allocate(bytes) => held.push((allocator.allocate(*bytes).unwrap(), plain.allocate(*bytes))),
                Step::Free(_) if held.is_empty() => {}
                Step::Free(index) => {
                    let (one, other) = held.swap_remove(index.index(held.len()));
                    allocator.free(one);
                    plain.free(other);
                }
            }
            prop_assert_eq!((allocator.allocated_bytes, allocator.reserved_bytes), plain.sums());
        }
    }
}
