//! Speed of admit-cel and of the `cel` crate on the same expressions and documents, in the same run.
//!
//! Groups, by what is measured: `json` (a `serde_json::Value` in, result out: what a caller pays), `text` (JSON text in,
//! admit-cel only, and `serde_json` reading the same text), `eval` (documents bound beforehand), `compile`.

use std::hint::black_box;

use bench::cases::{self, Case};
use bench::ours::{Ours, environment, texts};
use bench::peer::Peer;
use bumpalo::Bump;
use criterion::{Criterion, criterion_group, criterion_main};

fn json(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("json");
    for case in cases::all() {
        let (ours, peer) = both(&case);
        let mut arena = Bump::new();
        group.bench_function(format!("{}/admit", case.name), |b| {
            b.iter(|| black_box(ours.run(&mut arena, black_box(&case))));
        });
        group.bench_function(format!("{}/cel", case.name), |b| {
            b.iter(|| black_box(peer.run(black_box(&case))));
        });
    }
}

fn eval(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("eval");
    for case in cases::all() {
        let (ours, peer) = both(&case);
        let bindings = ours.bind(&case);
        let mut arena = Bump::new();
        group.bench_function(format!("{}/admit", case.name), |b| {
            b.iter(|| {
                let result = black_box(ours.eval(&arena, black_box(&bindings)));
                arena.reset();
                result
            });
        });
        let context = peer.bind(&case);
        group.bench_function(format!("{}/cel", case.name), |b| {
            b.iter(|| black_box(peer.eval(black_box(&context))));
        });
    }
}

fn text(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("text");
    for case in cases::targets() {
        let ours = Ours::compile(&case);
        let texts = texts(&case);
        let mut arena = Bump::new();
        group.bench_function(format!("{}/admit", case.name), |b| {
            b.iter(|| {
                let bindings = ours.read(&arena, black_box(&texts));
                let result = black_box(ours.eval(&arena, &bindings));
                arena.reset();
                result
            });
        });
        group.bench_function(format!("{}/serde_json-read-only", case.name), |b| {
            b.iter(|| {
                for text in &texts {
                    black_box(serde_json::from_slice::<serde_json::Value>(black_box(text)).ok());
                }
            });
        });
    }
}

fn compile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    for case in cases::targets() {
        let env = environment(&case);
        // The first use of a release reads the signatures of its libraries.
        assert!(env.compile(case.text).is_ok());
        group.bench_function(format!("{}/admit", case.name), |b| {
            b.iter(|| env.compile(black_box(case.text)).map(|checked| env.program(&checked)));
        });
        group.bench_function(format!("{}/cel-parse-only", case.name), |b| {
            b.iter(|| cel::Program::compile(black_box(case.text)));
        });
    }
}

fn both(case: &Case) -> (Ours, Peer) {
    let (ours, peer) = (Ours::compile(case), Peer::compile(case));
    assert!(ours.run(&mut Bump::new(), case), "{}: admit-cel does not say true", case.name);
    assert!(peer.run(case), "{}: cel does not say true", case.name);
    (ours, peer)
}

criterion_group!(benches, json, eval, text, compile);
criterion_main!(benches);
