//! LIST: one consistent state, whole or in pages whose tokens name the revision and the place.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use super::options::{ListOptions, VersionMatch};
use super::selector::Selector;
use super::{Call, Registry, views};
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::store::{Range, Revision, StoreError, Stored, estimate};

/// A page, as the caller sees its objects.
#[derive(Debug)]
pub struct Listing {
    pub revision: Revision,
    pub items: Vec<Value>,
    /// Empty on the last page.
    pub continue_token: String,
    pub remaining: Option<usize>,
}

impl Listing {
    /// The List document. Items of built-in kinds do not repeat their kind.
    #[must_use]
    pub fn into_value(self, info: &ResourceInfo) -> Value {
        let mut items = self.items;
        if info.builtin {
            for item in &mut items {
                object::set_field(item, "kind", None);
                object::set_field(item, "apiVersion", None);
            }
        }
        let kind = info.list_kind.as_str();
        let metadata = list_meta(self.revision, &self.continue_token, self.remaining, !info.builtin);
        if info.builtin {
            json!({"kind": kind, "apiVersion": info.api_version(), "metadata": metadata, "items": items})
        } else {
            // What has no type of its own shows its members by name.
            json!({"apiVersion": info.api_version(), "items": items, "kind": kind, "metadata": metadata})
        }
    }
}

/// `always`: lists of custom resources show an empty continue token too.
fn list_meta(revision: Revision, token: &str, remaining: Option<usize>, always: bool) -> Value {
    let mut meta = Map::new();
    if always {
        meta.insert("continue".to_owned(), token.into());
        meta.extend(remaining.map(|remaining| ("remainingItemCount".to_owned(), remaining.into())));
        meta.insert("resourceVersion".to_owned(), revision.to_string().into());
        return Value::Object(meta);
    }
    meta.insert("resourceVersion".to_owned(), revision.to_string().into());
    if !token.is_empty() {
        meta.insert("continue".to_owned(), token.into());
    }
    meta.extend(remaining.map(|remaining| ("remainingItemCount".to_owned(), remaining.into())));
    Value::Object(meta)
}

/// Where the next page begins, and in which state.
struct Place {
    revision: Revision,
    namespace: String,
    name: String,
}

impl Registry {
    /// # Errors
    /// 400 for selectors and tokens that cannot be read, 410 when the token's state is gone.
    pub fn list(&self, call: &Call, options: &ListOptions) -> Result<Listing, Refusal> {
        let selector = Selector::parse(&call.info, &options.label_selector, &options.field_selector)?;
        let place = resume(options)?;
        let at = match &place {
            Some(place) => Some(place.revision),
            None => self.listed_revision(options)?,
        };
        let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let after = place.as_ref().map(|place| (place.namespace.as_str(), place.name.as_str()));
        let range = Range { namespace, after, at };
        // A list from the cache, which upstream answers whole, does not page.
        let limit = if options.resource_version == "0" { 0 } else { options.limit };
        let mut items = Vec::new();
        let mut unseen = None;
        let mut take = |stored: &Stored| {
            let view = match views::outgoing(call, &stored.object) {
                Ok(view) => view,
                Err(error) => {
                    unseen.get_or_insert(error);
                    return false;
                }
            };
            let taken = selector.matches(&view);
            if taken {
                items.push(view.into_owned());
            }
            taken
        };
        let page = self
            .store
            .list(&call.info.storage_key, range, limit, &mut take)
            .map_err(|error| list_refusal(&error, place.is_some()))?;
        if let Some(error) = unseen {
            return Err(error.into());
        }
        let more = page.remaining > 0;
        let token = if more { next_token(page.revision, items.last()) } else { String::new() };
        let remaining = (more && selector.is_empty()).then_some(page.remaining);
        Ok(Listing { revision: page.revision, items, continue_token: token, remaining })
    }

    /// Roughly the bytes of what [`Self::list`] would show, from above where it selects.
    pub(crate) fn weight(&self, call: &Call, options: &ListOptions) -> usize {
        let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let selects = !options.label_selector.is_empty() || !options.field_selector.is_empty();
        let most = if selects || options.limit == 0 { usize::MAX } else { options.limit };
        let (mut bytes, mut seen) = (0usize, 0);
        let mut weigh = |stored: &Stored| {
            if seen < most {
                bytes = bytes.saturating_add(estimate(&stored.object));
                seen += 1;
            }
            false
        };
        // What cannot be listed weighs nothing, and is refused by who lists it.
        let _ =
            self.store.list(&call.info.storage_key, Range { namespace, ..Range::default() }, 0, &mut weigh);
        bytes
    }

    /// Roughly the bytes of one object; none where it is not there.
    pub(crate) fn weight_of(&self, call: &Call, name: &str) -> usize {
        self.store.get(&call.key(name)).map_or(0, |stored| estimate(&stored.object))
    }

    fn listed_revision(&self, options: &ListOptions) -> Result<Option<Revision>, Refusal> {
        let asked = parse_version(&options.resource_version)
            .map_err(|why| Refusal::bad_request(format!("invalid resource version: {why}")))?;
        let exact = options.version_match == Some(VersionMatch::Exact)
            || (options.version_match.is_none() && options.limit > 0 && asked > 0);
        if exact {
            return Ok(Some(asked));
        }
        if asked > self.store.revision() {
            let newest = self.store.revision();
            return Err(Refusal::too_large_version(asked, newest));
        }
        Ok(None)
    }
}

/// 0 for an absent version.
pub(super) fn parse_version(text: &str) -> Result<Revision, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        )
    })
}

fn list_refusal(error: &StoreError, paged: bool) -> Refusal {
    match error {
        StoreError::Compacted { .. } if paged => Refusal::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter.",
        ),
        StoreError::Compacted { compacted } => {
            Refusal::expired(format!("The resourceVersion for the provided list is too old ({compacted})."))
        }
        StoreError::Future { wanted, newest } => Refusal::too_large_version(*wanted, *newest),
        StoreError::Conflict(_) | StoreError::Backend(_) => super::store_failed(error),
    }
}

fn next_token(revision: Revision, last: Option<&Value>) -> String {
    let Some(last) = last else { return String::new() };
    let place = json!({
        "v": "meta.k8s.io/v1", "rv": revision, "start": [object::namespace(last), object::name(last)]
    });
    URL_SAFE_NO_PAD.encode(place.to_string())
}

/// Reads tokens as leniently as Go does, so that what is wrong with one is found where Go finds it.
const TOKENS: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn resume(options: &ListOptions) -> Result<Option<Place>, Refusal> {
    if options.continue_token.is_empty() {
        return Ok(None);
    }
    let invalid = |why: String| {
        Refusal::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = TOKENS.decode(&options.continue_token).map_err(|error| invalid(error.to_string()))?;
    let value = admit_policy::json::parse(&bytes).map_err(|error| invalid(error.to_string()))?.value;
    let part = |index: usize| value.pointer(&format!("/start/{index}")).and_then(Value::as_str);
    let (Some(revision), Some(namespace), Some(name)) = (value["rv"].as_u64(), part(0), part(1)) else {
        return Err(invalid("incorrect encoding".to_owned()));
    };
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(Some(Place { revision, namespace: namespace.to_owned(), name: name.to_owned() }))
}
