//! Allocations of one evaluation, counted exactly: none for the three expressions with targets, in an arena that is used
//! again.

use allocation_counter::measure;
use bench::cases;
use bench::ours::{Ours, texts};
use bumpalo::Bump;

#[test]
fn an_evaluation_from_a_serde_value_allocates_nothing() {
    for case in cases::targets() {
        let ours = Ours::compile(&case);
        let mut arena = Bump::with_capacity(4096);
        let counts = measure(|| assert!(ours.run(&mut arena, &case)));
        assert_eq!(counts.count_total, 0, "{}: {} bytes", case.name, counts.bytes_total);
    }
}

#[test]
fn the_other_cases_allocate_nothing_either_once_the_arena_has_grown() {
    for case in cases::all() {
        let ours = Ours::compile(&case);
        let mut arena = Bump::with_capacity(64 << 10);
        // Times are read with zones that are looked up once, patterns compile their automata lazily.
        assert!(ours.run(&mut arena, &case));
        let counts = measure(|| assert!(ours.run(&mut arena, &case)));
        assert_eq!(counts.count_total, 0, "{}: {} bytes", case.name, counts.bytes_total);
    }
}

/// The reader's own stacks; nothing for each value, which the arena holds.
#[test]
fn reading_text_allocates_a_few_times_whatever_its_size() {
    for (case, most) in cases::targets().iter().zip([4, 14, 6]) {
        let ours = Ours::compile(case);
        let texts = texts(case);
        let arena = Bump::with_capacity(256 << 10);
        let counts = measure(|| assert!(ours.eval(&arena, &ours.read(&arena, &texts))));
        assert!(counts.count_total <= most, "{}: {} allocations", case.name, counts.count_total);
    }
}
