//! Renders the results of `admit replay` for people: the most severe and most frequent first, and counts at the end.

use std::fmt::Write as _;

use admit_analysis::replay::{Counts, Effect, Group, GroupKey, Report, Sample};

use crate::cli::render::Palette;

pub(in crate::cli) fn text(report: &Report, palette: Palette) -> String {
    let mut out = String::new();
    let mut groups: Vec<(&GroupKey, &Group)> = report.groups.iter().collect();
    groups.sort_by_key(|(key, group)| std::cmp::Reverse((key.effect, group.count)));
    for (key, group) in groups {
        write_group(&mut out, report.compared, key, group, palette);
    }
    for ((cause, resource), found) in &report.undecided {
        let label = palette.yellow("undecided");
        let _ = writeln!(out, "{label} {}: {resource}: {}", found.count, cause.told());
        found.samples.iter().for_each(|sample| write_sample(&mut out, sample));
    }
    for (cause, lines) in &report.unread {
        let label = palette.yellow("unread");
        let more = if u64::try_from(lines.places.len()).unwrap_or(0) < lines.count { ", …" } else { "" };
        let told = match cause.as_str() {
            "cut" => "ends in the middle of a document",
            "malformed" => "no JSON, or no Event",
            "foreign" => "neither an Event of audit.k8s.io/v1 nor an AdmissionReview of admission.k8s.io/v1",
            "tooLong" => "too long",
            "late" => "the time was over; this and what comes behind was not looked at (--timeout)",
            _ => "the file ends early, or is damaged",
        };
        let _ = writeln!(out, "{label} {}: {told}: {}{more}", lines.count, lines.places.join(", "));
    }
    if !report.refused.is_empty() {
        let by: Vec<String> =
            report.refused.iter().map(|(by, count)| format!("{count} {}", by.as_str())).collect();
        let _ = writeln!(out, "refused by something else: {}", by.join(", "));
    }
    write_counts(&mut out, report);
    out
}

fn write_group(out: &mut String, compared: bool, key: &GroupKey, group: &Group, palette: Palette) {
    let GroupKey { policy, user, namespace, kind, before, effect } = key;
    let label = match (compared, before, effect) {
        (true, before, after) => format!("{} → {}", nothing_or(*before), nothing_or(*after)),
        (false, _, effect) => nothing_or(*effect).to_owned(),
    };
    let label = match effect {
        Some(effect) if effect.denies() => palette.red(&label),
        Some(Effect::Warn | Effect::Excepted | Effect::Error | Effect::Audit) => palette.yellow(&label),
        _ => palette.green(&label),
    };
    let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    let _ = write!(out, "{label} {}: {policy}: {kind}{place} by {user}", group.count);
    let _ = match (group.first.as_str(), group.last.as_str()) {
        ("", _) => writeln!(out),
        (first, last) if first == last => writeln!(out, ", {first}"),
        (first, last) => writeln!(out, ", {first} to {last}"),
    };
    group.samples.iter().for_each(|sample| write_sample(out, sample));
}

fn nothing_or(effect: Option<Effect>) -> &'static str {
    match effect {
        None => "nothing",
        Some(Effect::Deny) => "deny",
        Some(Effect::DenyOnError) => "deny on error",
        Some(Effect::Error) => "error",
        Some(Effect::Warn) => "warn",
        Some(Effect::Excepted) => "let through by an exception",
        Some(Effect::Audit) => "audit",
    }
}

fn write_sample(out: &mut String, Sample { audit_id, name, message, place }: &Sample) {
    let name = if name.is_empty() { "(no name)" } else { name };
    // A message may have several lines.
    let message = message.replace('\n', "\n      ");
    let message = if message.is_empty() { message } else { format!(": {message}") };
    let _ = writeln!(out, "    {place} {audit_id} {name}{message}");
}

fn write_counts(out: &mut String, report: &Report) {
    let Counts { lines, reads, other_stages, refused, unmatched, .. } = report.counts;
    let Counts { admitted, warned, denied, undecided, as_sent, .. } = report.counts;
    let Counts { newly_denied, newly_admitted, changed, beyond, evicted, .. } = report.counts;
    if as_sent > 0 {
        let _ = writeln!(
            out,
            "{as_sent} decided as they were sent: webhooks may have changed them before they were denied"
        );
    }
    if evicted > 0 {
        let _ = writeln!(out, "{evicted} states of objects were given up for want of room");
    }
    if beyond > 0 {
        let _ = writeln!(out, "{beyond} more are in no group: there are too many groups");
    }
    let _ = writeln!(
        out,
        "{lines} lines: {reads} reads, {other_stages} of other stages, {refused} refused by something else, {unmatched} that no \
         policy is about"
    );
    let _ = write!(out, "{denied} denied, {admitted} admitted ({warned} warned), {undecided} undecided");
    let _ = match report.compared {
        true => {
            writeln!(out, "; {changed} changed, {newly_denied} newly denied, {newly_admitted} newly admitted")
        }
        false => writeln!(out, "; otherwise than then: {newly_denied} denied, {newly_admitted} admitted"),
    };
}
