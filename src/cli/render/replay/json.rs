//! Renders the results of `admit replay` as one JSON document.

use admit_analysis::replay::{Counts, Report, Sample};
use serde_json::{Map, Value, json as document};

use crate::cli::render;

pub(in crate::cli) fn json(report: &Report) -> String {
    let groups = report.groups.iter().map(|(key, group)| {
        document!({
            "policy": key.policy,
            "user": key.user,
            "namespace": key.namespace,
            "kind": key.kind,
            "before": key.before.map(|effect| effect.as_str()),
            "effect": key.effect.map(|effect| effect.as_str()),
            "count": group.count,
            "first": time(&group.first),
            "last": time(&group.last),
            "samples": group.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    });
    let undecided = report.undecided.iter().map(|((cause, resource), found)| {
        document!({
            "cause": cause.as_str(),
            "because": cause.told(),
            "resource": resource,
            "count": found.count,
            "samples": found.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    });
    let unread = report.unread.iter().map(
        |(cause, lines)| document!({"cause": cause.as_str(), "count": lines.count, "places": lines.places}),
    );
    let refused: Map<String, Value> =
        report.refused.iter().map(|(by, count)| (by.as_str().to_owned(), document!(count))).collect();
    render::json(&document!({
        "compared": report.compared,
        "groups": groups.collect::<Vec<_>>(),
        "undecided": undecided.collect::<Vec<_>>(),
        "unread": unread.collect::<Vec<_>>(),
        "refused": refused,
        "summary": summary(&report.counts),
    }))
}

fn sample(sample: &Sample) -> Value {
    let Sample { audit_id, name, message, place } = sample;
    document!({"auditID": audit_id, "name": name, "message": message, "place": place})
}

fn time(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn summary(counts: &Counts) -> Value {
    let Counts {
        lines,
        events,
        reviews,
        other_stages,
        reads,
        refused,
        unmatched,
        admitted,
        warned,
        denied,
        undecided,
        as_sent,
        dry_runs,
        newly_denied,
        newly_admitted,
        changed,
        beyond,
        evicted,
    } = counts;
    document!({
        "lines": lines,
        "events": events,
        "reviews": reviews,
        "otherStages": other_stages,
        "reads": reads,
        "refused": refused,
        "unmatched": unmatched,
        "admitted": admitted,
        "warned": warned,
        "denied": denied,
        "undecided": undecided,
        "asSent": as_sent,
        "dryRuns": dry_runs,
        "newlyDenied": newly_denied,
        "newlyAdmitted": newly_admitted,
        "changed": changed,
        "beyond": beyond,
        "evicted": evicted,
    })
}
