//! What an authorizer is asked: the spec of a SubjectAccessReview, as match conditions see it.

use serde_json::{Map, Value, json};

use crate::read::decode::{Fields, FieldsError, known};

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
        let mut request = json!({
            "user": fields.string("user")?,
            "groups": fields.strings("groups")?,
            "uid": fields.string("uid")?,
            "extra": {},
        });
        let extra = fields.object("extra")?;
        for key in extra.keys() {
            request["extra"][key] = extra.strings(key)?.into();
        }
        let resource = fields.optional_object("resourceAttributes")?;
        let path = fields.optional_object("nonResourceAttributes")?;
        if resource.is_some() == path.is_some() {
            let why = "must have exactly one of `resourceAttributes` and `nonResourceAttributes`";
            return Err(crate::read::decode::wrong(fields.path(), why));
        }
        if let Some(resource) = resource {
            request["resourceAttributes"] = Value::Object(of_resource(&resource)?);
        }
        if let Some(path) = path {
            known(&path, &["path", "verb"])?;
            request["nonResourceAttributes"] =
                json!({"verb": path.string("verb")?, "path": path.string("path")?});
        }
        Ok(Self(request))
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

/// Of a text and requirements the text alone is shown; nothing where there is neither.
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
