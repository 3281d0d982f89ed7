//! What a decision allocates does not grow with the object.

use allocation_counter::measure;
use bench::policies;

#[test]
fn a_decision_allocates_the_same_for_an_object_a_thousand_times_as_large() {
    let (set, host) = (policies::set(16), policies::host());
    let count = |annotations| {
        let request = policies::request(annotations);
        let decide = || assert!(set.decide(&request, &host).unwrap().allowed());
        // Patterns compile their automata lazily.
        decide();
        let counts = measure(decide);
        (counts.count_total, counts.bytes_total)
    };
    let small = count(1);
    println!("{} allocations, {} bytes for 16 policies", small.0, small.1);
    assert_eq!(small, count(10_000));
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
    println!("{each} bytes for each policy with its binding");
    assert!(each * 10_000 <= 200 << 20, "{each} bytes for each policy");
}
