//! What is told after a change is what is told of the same files when they are opened: nothing of what was found out before is
//! told once it no longer holds.

use admit_language::{Encoding, Mistake, Workspace};
use admit_policy::{Documents, LoadOptions, manifest};
use proptest::prelude::RngCore as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::support::place;

const PROPERTIES: &str = "spec:
  type: object
  required: [size]
  properties:
    size: {type: integer, minimum: 1}
    phase:
      type: string
      enum: [Open, Closed]
      x-kubernetes-validations:
      - rule: self == oldSelf || oldSelf == 'Open'
    doors:
      type: array
      items:
        type: object
        properties:
          name:
            type: string
            pattern: '^[a-z]+$'
            maxLength: 63
            x-kubernetes-validations:
            - rule: self.matches('^d[0-9]*$')
              messageExpression: \"'no ' + self\"
    labels:
      type: object
      additionalProperties:
        type: string
        format: clock
  x-kubernetes-validations:
  - rule: >-
      self.doors.all(d, d.name != 'x') ||
      self.size > 1
    message: none left
    fieldPath: .doors
  - rule: has(self.labels) && self.labels.all(k, k.matches('^d[0-9]*$'))";

/// What stands behind the first version.
const REST: &str = "  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
            x-kubernetes-validations:
            - rule: self.size == self.size
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: shops}
spec: {policyName: shops, validationActions: [Deny]}
";

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: shops}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [shops]}]
  variables:
  - name: doors
    expression: object.spec.doors
  - name: few
    expression: size(variables.doors) < 5
  validations:
  - expression: variables.few || object.spec.size > 3 # admit:allow type-check
    message: few
";

/// What is put in the place of what; each may come back.
const CHANGES: [(&str, &str); 30] = [
    ("self", "sel"),
    ("size", "sizes"),
    ("size:", "amount:"),
    ("integer", "string"),
    ("> 1", "> 'a'"),
    ("^d[0-9]*$", "^d([0-9]*$"),
    ("^d[0-9]*$", "^e[0-9]*$"),
    ("doors", "gates"),
    ("maxLength: 63", "maxLength: 6"),
    ("                      maxLength: 63\n", ""),
    ("minimum: 1", "minimum: 0"),
    ("'none left'", "none left"),
    ("message: none left\n", "message: \"{{self.size}}\"\n"),
    ("\n", "\n\n"),
    ("\n", "\n# why\n"),
    ("  ", " "),
    ("type: array", "type: array\n                maxItems: 3"),
    ("== oldSelf", "== old"),
    ("v2", "v3"),
    ("Namespaced", "Cluster"),
    ("shops", "shop"),
    ("clock", "date"),
    ("- rule:", "- rul:"),
    (" # admit:allow type-check", ""),
    ("storage: false", "storage: true"),
    ("Open", "Opened"),
    (".doors", ".doors.none"),
    ("'", "\""),
    ("---\n", ""),
    (" && ", " &&& "),
];

/// Changes after which all is compared.
const COMPARED: usize = 120;

fn places(text: &str, needle: &str) -> Vec<usize> {
    text.match_indices(needle).map(|(at, _)| at).collect()
}

fn opened(files: &[(&str, String)]) -> Workspace {
    let mut workspace =
        Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
    for (name, text) in files {
        workspace.open(name, text.clone());
    }
    workspace
}

fn told(workspace: &mut Workspace, name: &str, text: &str) -> (Vec<Mistake>, Vec<Option<String>>) {
    let mistakes = workspace.check(name);
    let rules = places(text, "self").into_iter().chain(places(text, "variables."));
    let hovers = rules.map(|at| workspace.hover(name, place(text, at)).map(|told| told.text)).collect();
    (mistakes, hovers)
}

#[test]
fn what_is_told_after_changes_is_what_is_told_of_the_files_as_they_are() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut below = |end: usize| random.next_u32() as usize % end;
    let definition = testing::shops(PROPERTIES) + REST;
    let originals = [("shop.yaml", definition.as_str()), ("policy.yaml", POLICY)];
    let mut files = originals.map(|(name, text)| (name, text.to_owned()));
    let mut edited = opened(&files);
    let (mut compared, mut found) = (0, 0);
    while compared < COMPARED {
        let file = usize::from(below(4) == 0);
        let (name, text) = (files[file].0, files[file].1.clone());
        let (from, to) = CHANGES[below(CHANGES.len())];
        let (from, to) = if below(2) == 0 { (from, to) } else { (to, from) };
        let there = places(&text, from);
        if there.is_empty() || from.is_empty() {
            continue;
        }
        let at = there[below(there.len())];
        let new = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        edited.edit(name, place(&text, at)..place(&text, at + from.len()), to);
        assert_eq!(edited.text(name), Some(new.as_str()));
        files[file].1 = new;
        let asked = if below(3) == 0 { 1 - file } else { file };
        let (name, text) = (files[asked].0, files[asked].1.clone());
        let mut again = told(&mut edited, name, &text);
        let mut fresh = told(&mut opened(&files), name, &text);
        // Of a text that is no YAML the last structure is known, which a new workspace has not seen.
        if files.iter().any(|(name, text)| manifest::read(name, text).is_err()) {
            (again.1, fresh.1) = (Vec::new(), Vec::new());
            if manifest::read(name, &text).is_ok() {
                continue;
            }
        }
        assert_eq!(again, fresh, "`{to}` for `{from}` at {at} of {}: {text}", files[file].0);
        found += again.0.len();
        compared += 1;
        // Before all of it is broken for good, begin anew.
        if compared % 12 == 0 {
            for ((name, text), original) in files.iter_mut().zip(originals) {
                original.1.clone_into(text);
                edited.open(name, text.clone());
            }
        }
    }
    assert!(found > COMPARED, "{found} mistakes");
}
