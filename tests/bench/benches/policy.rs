//! Speed of admit-policy: loading sets, reading reviews, and deciding a Pod of three containers under sixteen policies, alone
//! and among ten thousand.

use std::hint::black_box;
use std::time::Duration;

use admit_policy::{Arena, PolicySet, Request, Review};
use bench::policies;
use criterion::{Criterion, criterion_group, criterion_main};

fn load(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    for count in [100, 10_000] {
        let documents: Vec<_> = policies::documents(count).collect();
        group.bench_function(format!("{count}-policies/admit"), |b| {
            b.iter(|| {
                let mut builder = PolicySet::builder();
                for document in &documents {
                    assert!(builder.add(black_box(document)).is_ok());
                }
                builder.finish()
            });
        });
    }
}

fn decide(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    let (host, request) = (policies::host(), policies::request(2));
    for count in [16, 10_000] {
        let set = policies::set(count);
        assert!(set.decide(&request, &host).allowed());
        group.bench_function(format!("pod-of-{count}-policies/admit"), |b| {
            b.iter(|| set.decide(black_box(&request), &host));
        });
    }
}

/// From text to a request that can be decided on, beside the tree that `serde_json` makes of the same text.
fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    let text = policies::review(2);
    group.bench_function("review-of-a-pod/admit", |b| {
        b.iter(|| {
            let arena = Arena::for_text(text.len());
            let review = Review::read(&arena, black_box(&text));
            assert!(review.is_ok_and(|review| Request::from_review(review).is_ok()));
        });
    });
    group.bench_function("review-of-a-pod/serde_json", |b| {
        b.iter(|| serde_json::from_slice::<serde_json::Value>(black_box(&text)));
    });
}

criterion_group!(benches, load, read, decide);
criterion_main!(benches);
