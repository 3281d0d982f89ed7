//! Compares the field-wise computation with enumerating every permission.

use serde_json::json;

use super::*;

fn rules(rules: &[serde_json::Value]) -> Vec<Rule> {
    rules.iter().map(Rule::read).collect()
}

/// Enumerates every wanted permission that no rule of `held` allows, which [`missing`] avoids.
fn written_out(held: &[Rule], wanted: &[Rule]) -> usize {
    let names = |rule: &Rule| -> Vec<Option<String>> {
        if rule.resource_names.is_empty() {
            vec![None]
        } else {
            rule.resource_names.iter().cloned().map(Some).collect()
        }
    };
    let mut all = Vec::new();
    for rule in wanted {
        for (verb, group) in
            rule.verbs.iter().flat_map(|verb| rule.api_groups.iter().map(move |group| (verb, group)))
        {
            for resource in &rule.resources {
                all.extend(names(rule).into_iter().map(|name| (verb, group, resource, name)));
            }
        }
    }
    let allows = |held: &Rule, (verb, group, item, name): &(&String, &String, &String, Option<String>)| {
        let (resource, subresource) = item.split_once('/').unwrap_or((item, ""));
        has(&held.verbs, verb)
            && has(&held.api_groups, group)
            && held.resources.iter().any(|own| resource_fits(own, resource, subresource))
            && (held.resource_names.is_empty()
                || name.as_ref().is_some_and(|name| held.resource_names.contains(name)))
    };
    all.iter().filter(|permission| !held.iter().any(|held| allows(held, permission))).count()
}

#[test]
fn what_is_missing_is_named_in_few_rules() {
    let held = rules(&[json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/log"]})]);
    let wanted = rules(&[
        json!({"verbs": ["get", "delete", "patch"], "apiGroups": [""], "resources": ["pods"]}),
        json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"], "resourceNames": ["a"]}),
        json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
    ]);
    assert_eq!(
        missing(&held, &wanted).lines(),
        [
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete" "patch"]}"#,
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#
        ]
    );
    let everything = rules(&[
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ]);
    assert!(missing(&everything, &wanted).is_nothing());
}

#[test]
fn every_missing_permission_is_found() {
    let texts =
        |prefix: &str, of: &[usize]| -> Vec<String> { of.iter().map(|at| format!("{prefix}{at}")).collect() };
    let rule = |seed: usize, wide: usize| {
        let pick = |salt: usize| -> Vec<usize> {
            (0..wide).filter(|at| !(seed * 7 + salt * 5 + at * 3).is_multiple_of(3)).collect()
        };
        Rule {
            verbs: texts("v", &pick(1)),
            api_groups: texts("g", &pick(2)),
            resources: pick(3)
                .into_iter()
                .map(|at| if at.is_multiple_of(2) { format!("r{at}") } else { format!("r{at}/s") })
                .collect(),
            resource_names: if seed.is_multiple_of(4) { Vec::new() } else { texts("n", &pick(seed)) },
            ..Rule::default()
        }
    };
    for seed in 0..40 {
        let held: Vec<Rule> = (seed..seed + 5).map(|seed| rule(seed, 4)).collect();
        let wanted: Vec<Rule> = (seed + 3..seed + 7).map(|seed| rule(seed * 3, 5)).collect();
        let found = missing(&held, &wanted);
        let told: usize = found.rules.iter().map(|rule| rule.verbs.len()).sum();
        assert_eq!((told, found.more, found.undecided), (written_out(&held, &wanted), 0, false), "{seed}");
    }
}

#[test]
fn a_product_is_counted_and_not_written_out() {
    let texts = |prefix: &str| -> Vec<String> { (0..70).map(|at| format!("{prefix}{at}")).collect() };
    let wanted = [Rule {
        verbs: texts("v"),
        api_groups: texts("g"),
        resources: texts("r"),
        resource_names: texts("n"),
        ..Rule::default()
    }];
    let nothing = missing(&[], &wanted);
    assert!(!nothing.undecided);
    let told: usize = nothing.rules.iter().map(|rule| rule.verbs.len()).sum();
    assert_eq!(told, MAX_TOLD);
    assert_eq!(told as u64 + nothing.more, 70_u64.pow(4));
    let all_but_one = [
        Rule { verbs: texts("v").split_off(1), ..wanted[0].clone() },
        Rule { api_groups: texts("g").split_off(1), ..wanted[0].clone() },
        Rule { resource_names: texts("n").split_off(1), ..wanted[0].clone() },
        Rule { resources: texts("r").split_off(1), ..wanted[0].clone() },
    ];
    let line = r#"{APIGroups:["g0"], Resources:["r0"], ResourceNames:["n0"], Verbs:["v0"]}"#;
    assert_eq!(missing(&all_but_one, &wanted).lines(), [line]);
}

#[test]
fn many_rules_are_compared_one_by_one() {
    let rule = |name: usize| Rule {
        verbs: vec!["get".to_owned(), "list".to_owned()],
        api_groups: vec![String::new()],
        resources: vec!["pods".to_owned()],
        resource_names: vec![format!("n{name}")],
        ..Rule::default()
    };
    let wanted: Vec<Rule> = (0..20_000).map(rule).collect();
    let held = rules(&[json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})]);
    let found = missing(&held, &wanted);
    assert_eq!((found.rules.len(), found.more, found.undecided), (MAX_TOLD, 10_000, false));
    let held = rules(&[json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]})]);
    assert!(missing(&held, &wanted).is_nothing());
}

#[test]
fn what_takes_too_long_to_compare_is_missing() {
    // Every value is allowed by rules of its own, so that no two are alike.
    let texts = |prefix: &str, bit: usize| -> Vec<String> {
        (0..2048).filter(|at| at >> bit & 1 == 1).map(|at| format!("{prefix}{at}")).collect()
    };
    let all = |prefix: &str| (0..2048).map(|at| format!("{prefix}{at}")).collect();
    let held: Vec<Rule> = (0..11)
        .map(|bit| Rule {
            verbs: texts("v", bit),
            api_groups: texts("g", bit),
            resources: texts("r", bit),
            ..Rule::default()
        })
        .collect();
    let wanted = [Rule { verbs: all("v"), api_groups: all("g"), resources: all("r"), ..Rule::default() }];
    let found = missing(&held, &wanted);
    assert!(found.undecided);
    assert_eq!(found.lines().last().map(String::as_str), Some("and others: there are too many to compare"));
}
