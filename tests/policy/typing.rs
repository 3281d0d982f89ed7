//! Warnings of policies whose expressions do not fit the types of the objects they speak about.

use admit_policy::TypeWarning;

use crate::support::{denying, set, widgets};

const VERSIONS: &str = "  versions:
  - &v1
    name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
  - <<: *v1
    name: v2
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: string}}}}
";

fn warnings(versions: &str, spec: &str) -> Vec<TypeWarning> {
    let policy = denying(&format!(
        "  matchConstraints:
    resourceRules:
    - apiGroups: [example.com]
      apiVersions: {versions}
      operations: ['*']
      resources: [widgets, widgets/scale]
{spec}"
    ));
    let set = set(&format!("{}---{policy}", widgets(VERSIONS)));
    let (policy, _) = set.policies().next().expect("there is one policy");
    policy.check_types(set.documents())
}

fn warning(field: &str, warning: &str) -> TypeWarning {
    TypeWarning { field: field.to_owned(), warning: warning.to_owned() }
}

#[test]
fn unknown_fields_and_wrong_types_are_told_for_each_kind() {
    let spec = "
  validations:
  - expression: object.spec.size < 3
  - expression: object.spec.sise == oldObject.spec.sise
    messageExpression: string(object.spec.size)
";
    let expected = [
        warning(
            "spec.validations[0].expression",
            "example.com/v2, Kind=Widget: ERROR: <input>:1:18: found no matching overload for \
             '_<_' applied to '(string, int)'\n | object.spec.size < 3\n | .................^\n",
        ),
        warning(
            "spec.validations[1].expression",
            "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'sise'\n | \
             object.spec.sise == oldObject.spec.sise\n | ...........^\nERROR: <input>:1:35: undefined field \
             'sise'\n | object.spec.sise == oldObject.spec.sise\n | ..................................^\n\n\
             example.com/v2, Kind=Widget: ERROR: <input>:1:12: undefined field 'sise'\n | \
             object.spec.sise == oldObject.spec.sise\n | ...........^\nERROR: <input>:1:35: undefined field \
             'sise'\n | object.spec.sise == oldObject.spec.sise\n | ..................................^\n",
        ),
    ];
    assert_eq!(warnings("[v2, v1]", spec), expected);
}

#[test]
fn variables_have_the_types_of_the_kind() {
    let spec = "
  variables:
  - {name: size, expression: object.spec.size}
  validations:
  - expression: variables.size == 'small'
";
    let found = warnings("[v1, v2]", spec);
    assert_eq!(found.len(), 1);
    assert!(found[0].warning.starts_with("example.com/v1, Kind=Widget: ERROR: "), "{found:#?}");
    assert!(found[0].warning.contains("'(int, string)'"), "{found:#?}");
}

#[test]
fn all_of_the_metadata_is_known() {
    let spec = "
  validations:
  - expression: object.metadata.namespace != '' && 'a' in object.metadata.labels && object.kind == 'Widget'
  - expression: object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')
  - expression: object.metadata.ownerReferences.all(o, o.controller) && object.metadata.generation > 1
  - expression: object.metadata.label == {}
";
    let found = warnings("[v1]", spec);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].warning.contains("undefined field 'label'"), "{found:#?}");
}

#[test]
fn the_authorizer_is_known_without_what_is_below_it() {
    let spec = "
  validations:
  - expression: authorizer.group('').resource('pods').check('get').allowed()
  - expression: authorizer.requestResource.check('get').allowed()
";
    let expected = "example.com/v1, Kind=Widget: ERROR: <input>:1:11: unexpected failed resolution of \
                    'kubernetes.authorization.Authorizer'\n | authorizer.requestResource.check('get').allowed()\n | \
                    ..........^\n";
    assert_eq!(warnings("[v1]", spec), [warning("spec.validations[1].expression", expected)]);
}

#[test]
fn wildcards_are_given_up() {
    let spec = "
  validations:
  - expression: object.nothing.of.the.kind
";
    assert_eq!(warnings("['*']", &spec.replace("object.nothing.of.the.kind", "object.nothing == 1")), []);
}
