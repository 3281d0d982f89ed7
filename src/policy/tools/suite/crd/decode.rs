//! Parses a CRD test suite into typed cases.

use admit_apimachinery::yaml;
use serde_json::Value;

use super::{CrdCase, CrdSuite, Named};
use crate::read::decode::{Fields, FieldsError, wrong};

const FIELDS: &[&str] = &["apiVersion", "kind", "name", "crdName", "crd", "featureGates", "version", "tests"];

impl CrdSuite {
    /// Whether `document` is such a suite: it names a definition and has tests.
    pub fn is(document: &Value) -> bool {
        let names = document.get("crdName").is_some() || document.get("crd").is_some_and(Value::is_string);
        names && document.get("tests").is_some()
    }

    /// Reads a suite.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn decode(document: &Value) -> Result<Self, FieldsError> {
        let fields = Fields::of(document, "")?;
        let tests = fields.object("tests")?;
        let mut cases = Vec::new();
        for (key, updates) in [("onCreate", false), ("onUpdate", true)] {
            for case in tests.objects(key)? {
                cases.push(CrdCase::decode(&case, updates)?);
            }
        }
        let Some(first) = cases.first() else {
            return Err(wrong("tests", "must have at least one case in `onCreate` or `onUpdate`"));
        };
        let version = match fields.optional_string("version")? {
            Some(version) => version,
            None => version_of(first)?,
        };
        Ok(Self {
            name: fields.string("name")?,
            definition: match fields.optional_string("crdName")? {
                Some(name) => Named::Name(name),
                None => Named::File(fields.string("crd")?),
            },
            feature_gates: fields.strings("featureGates")?,
            version,
            cases,
            unread: fields.unknown(FIELDS).collect(),
        })
    }
}

impl CrdCase {
    fn decode(fields: &Fields<'_>, updates: bool) -> Result<Self, FieldsError> {
        let expected_status_error = filled(fields, "expectedStatusError")?.filter(|_| updates);
        let case = Self {
            name: fields.string("name")?,
            path: fields.path().to_owned(),
            patches: if updates { patches(fields)? } else { None },
            initial: required(fields, "initial")?,
            updated: if updates { Some(required(fields, "updated")?) } else { None },
            expected: object(fields, "expected")?,
            expected_error: filled(fields, "expectedError")?,
            expected_status_error,
        };
        if case.expected_status_error.is_some()
            && case.updated.as_ref().is_some_and(|o| o.get("status").is_none())
        {
            let problem = "can never be seen: `updated` has no status, so that none is written";
            return Err(wrong(fields.path_of("expectedStatusError"), problem));
        }
        Ok(case)
    }
}

fn version_of(case: &CrdCase) -> Result<String, FieldsError> {
    let api_version = case.initial.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    match api_version.rsplit('/').next() {
        Some(version) if !version.is_empty() => Ok(version.to_owned()),
        _ => Err(wrong(
            format!("{}.initial", case.path),
            "must have an `apiVersion`, or the suite a `version`",
        )),
    }
}

/// Returns a string that is present and not empty.
fn filled(fields: &Fields<'_>, key: &str) -> Result<Option<String>, FieldsError> {
    Ok(fields.optional_string(key)?.filter(|text| !text.is_empty()))
}

fn required(fields: &Fields<'_>, key: &str) -> Result<Value, FieldsError> {
    object(fields, key)?.ok_or_else(|| wrong(fields.path_of(key), "must be an object written as a YAML text"))
}

/// Parses the string at `key` as YAML; None if it is empty.
fn object(fields: &Fields<'_>, key: &str) -> Result<Option<Value>, FieldsError> {
    let Some(text) = filled(fields, key)? else { return Ok(None) };
    let problem = |problem: String| wrong(fields.path_of(key), problem);
    let trees = yaml::parse_values(&text).map_err(|error| problem(format!("line {error}")))?;
    match trees.into_iter().next().map(|tree| tree.value) {
        None | Some(Value::Null) => Ok(None),
        Some(object @ Value::Object(_)) => Ok(Some(object)),
        Some(_) => Err(problem("must be the YAML of an object".to_owned())),
    }
}

fn patches(fields: &Fields<'_>) -> Result<Option<json_patch::Patch>, FieldsError> {
    let Some(list) = fields.get("initialCRDPatches") else { return Ok(None) };
    crate::patch::decode(list)
        .map(Some)
        .map_err(|why| wrong(fields.path_of("initialCRDPatches"), why.to_string()))
}
