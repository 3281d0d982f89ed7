//! Represents the spec of a SubjectAccessReview as match conditions see it.

use serde_json::{Map, Value, json};

use crate::read::decode::{Fields, FieldsError, known, wrong};

const FIELDS: &[&str] = &["user", "groups", "uid", "extra", "resourceAttributes", "nonResourceAttributes"];
const RESOURCE_FIELDS: &[&str] = &[
    "namespace",
    "verb",
    "group",
    "version",
    "resource",
    "subresource",
    "name",
    "fieldSelector",
    "labelSelector",
];
const SELECTOR_FIELDS: &[&str] = &["rawSelector", "requirements"];
const REQUIREMENT_FIELDS: &[&str] = &["key", "operator", "values"];

/// The spec of a SubjectAccessReview. [`Authorizers`](super::Authorizers) has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReview(Value);

impl AccessReview {
    /// Reads a spec.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    ///
    /// ```
    /// use admit_policy::server_config::AccessReview;
    /// use serde_json::json;
    ///
    /// let review = AccessReview::read(&json!({"user": "ann", "nonResourceAttributes": {"verb": "get", "path": "/"}}))?;
    /// assert_eq!(review.request()["groups"], json!([]));
    /// assert!(AccessReview::read(&json!({"user": "ann"})).is_err(), "about nothing");
    /// # Ok::<(), admit_policy::FieldsError>(())
    /// ```
    pub fn read(spec: &Value) -> Result<Self, FieldsError> {
        Self::decode(&Fields::of(spec, "")?)
    }

    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self, FieldsError> {
        known(fields, FIELDS)?;
        let of_extra = fields.object("extra")?;
        let mut extra = Map::new();
        for key in of_extra.keys() {
            extra.insert(key.clone(), of_extra.strings(key)?.into());
        }
        let mut request = Map::new();
        request.insert("user".to_owned(), fields.string("user")?.into());
        request.insert("groups".to_owned(), fields.strings("groups")?.into());
        request.insert("uid".to_owned(), fields.string("uid")?.into());
        request.insert("extra".to_owned(), extra.into());
        let resource = fields.optional_object("resourceAttributes")?;
        let path = fields.optional_object("nonResourceAttributes")?;
        let (name, attributes) = match (resource, path) {
            (Some(resource), None) => ("resourceAttributes", of_resource(&resource)?.into()),
            (None, Some(path)) => {
                known(&path, &["path", "verb"])?;
                ("nonResourceAttributes", json!({"verb": path.string("verb")?, "path": path.string("path")?}))
            }
            (Some(_), Some(_)) | (None, None) => {
                let why = "must have exactly one of `resourceAttributes` and `nonResourceAttributes`";
                return Err(wrong(fields.path(), why));
            }
        };
        request.insert(name.to_owned(), attributes);
        Ok(Self(request.into()))
    }

    /// The value of the variable `request`.
    #[must_use]
    pub const fn request(&self) -> &Value {
        &self.0
    }
}

fn of_resource(fields: &Fields<'_>) -> Result<Map<String, Value>, FieldsError> {
    known(fields, RESOURCE_FIELDS)?;
    let mut attributes = Map::new();
    for field in RESOURCE_FIELDS.iter().filter(|field| !field.ends_with("Selector")) {
        attributes.insert((*field).to_owned(), fields.string(field)?.into());
    }
    for field in ["fieldSelector", "labelSelector"] {
        if let Some(selector) = fields.optional_object(field)?
            && let Some(shown) = of_selector(&selector)?
        {
            attributes.insert(field.to_owned(), shown);
        }
    }
    Ok(attributes)
}

/// If there is a raw selector as well as requirements, only the former is shown; None if there is neither.
fn of_selector(fields: &Fields<'_>) -> Result<Option<Value>, FieldsError> {
    known(fields, SELECTOR_FIELDS)?;
    let raw = fields.string("rawSelector")?;
    let requirements = fields.objects("requirements")?;
    if !raw.is_empty() {
        return Ok(Some(json!({"rawSelector": raw})));
    }
    if requirements.is_empty() {
        return Ok(None);
    }
    let shown = |requirement: &Fields<'_>| {
        known(requirement, REQUIREMENT_FIELDS)?;
        Ok::<_, FieldsError>(json!({
            "key": requirement.string("key")?,
            "operator": requirement.string("operator")?,
            "values": requirement.strings("values")?,
        }))
    };
    let requirements: Vec<Value> = requirements.iter().map(shown).collect::<Result<_, _>>()?;
    Ok(Some(json!({"requirements": requirements})))
}
