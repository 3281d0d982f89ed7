//! What a decision allocates grows neither with the object nor with the policies that do not concern it; and what reading
//! takes for the object is its place in an arena.

use admit_policy::{Arena, Request, Review};
use allocation_counter::{AllocationInfo, measure};
use bench::policies;

/// Allocations of one decision about a request with so many annotations, under so many policies.
fn decide(policies: usize, annotations: usize) -> (u64, u64) {
    let (set, host, request) = (policies::set(policies), policies::host(), policies::request(annotations));
    let decide = || assert!(set.decide(&request, &host).allowed());
    // Patterns compile their automata lazily.
    decide();
    let AllocationInfo { count_total, bytes_total, .. } = measure(decide);
    (count_total, bytes_total)
}

#[test]
fn a_decision_allocates_the_same_for_an_object_a_thousand_times_as_large() {
    let small = decide(16, 1);
    println!("{} allocations, {} bytes for 16 policies", small.0, small.1);
    assert!(small.0 <= 3 * 16, "{} allocations", small.0);
    assert_eq!(small, decide(16, 10_000));
}

/// Allocations of reading the review of a request with so many annotations.
fn read(annotations: usize) -> u64 {
    let text = policies::review(annotations);
    let read = || {
        let arena = Arena::for_text(text.len());
        let review = Review::read(&arena, &text).unwrap();
        assert_eq!(Request::from_review(review).unwrap().name, "web");
    };
    measure(read).count_total
}

#[test]
fn reading_allocates_for_the_envelope_and_in_steps_that_double_for_the_object() {
    let small = read(1);
    println!("{small} allocations for a review");
    assert!(small <= 96, "{small} allocations");
    let large = read(10_000);
    assert!(large <= small + 32, "{large} allocations, {small} for a small object");
}

#[test]
fn a_decision_allocates_the_same_among_a_thousand_policies_as_under_those_that_match() {
    assert_eq!(decide(16, 2), decide(1_000, 2));
}

#[test]
fn ten_thousand_policies_fit_in_two_hundred_megabytes() {
    const COUNT: u64 = 500;
    let documents: Vec<_> = policies::documents(500).collect();
    // What is made once for all policies of a process.
    let _ = policies::set(1);
    let mut set = None;
    let counts = measure(|| {
        let mut builder = admit_policy::PolicySet::builder();
        for document in &documents {
            builder.add(document).unwrap();
        }
        set = Some(builder.finish());
    });
    let each = u64::try_from(counts.bytes_current).unwrap() / COUNT;
    println!("{each} bytes for each policy with its binding, {} allocations", counts.count_total / COUNT);
    assert!(each * 10_000 <= 200 << 20, "{each} bytes for each policy");
}
