//! Implements LIST: one consistent state, whole or in pages, whose continue tokens hold the revision and the position.

use std::borrow::Cow;
use std::sync::Arc;

use admit_policy::crd::ConversionError;
use serde_json::{Map, Value, json};

use super::continue_token::{self, Place};
use super::selector::Selector;
use super::stored_text::{beginning, type_members};
use super::{Registry, storage_version};
use crate::call::{Call, ListOptions, VersionMatch};
use crate::conversion::batch;
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::store::{Kept, Range, Revision, StoreError};

/// A page of objects as the caller sees them: values, or stored objects where these are the same.
#[derive(Debug)]
pub(crate) struct Listing<T = Value> {
    pub revision: Revision,
    pub items: Vec<T>,
    /// Empty on the last page.
    pub continue_token: String,
    pub remaining: Option<usize>,
}

impl<T> Listing<T> {
    /// Builds a page of `items` at a revision, where `last` was examined last and `behind` objects follow.
    fn of(
        (revision, items): (Revision, Vec<T>),
        (last, behind): (Option<&Kept>, usize),
        call: &Call,
        asked: &Asked,
    ) -> Self {
        let more = behind > 0;
        let last = last.filter(|_| more).map(|last| last.object.head());
        let continue_token = continue_token::next(revision, last.as_ref(), call, asked.cached);
        let remaining = (more && asked.selector.is_empty()).then_some(behind);
        Self { revision, items, continue_token, remaining }
    }

    fn metadata(&self, info: &ResourceInfo) -> Value {
        list_meta(self.revision, &self.continue_token, self.remaining, !info.builtin)
    }
}

impl Listing<Kept> {
    /// Returns the List document of a built-in kind as text with a line feed; None if an object is stored in another form than listed.
    fn text(&self, info: &ResourceInfo) -> Option<Vec<u8>> {
        let (version, metadata) = (info.api_version(), self.metadata(info));
        let types = beginning(info);
        let length: usize = self.items.iter().map(|kept| kept.object.text().len()).sum();
        let mut text = Vec::with_capacity(length.saturating_add(1024));
        let head =
            format!("{{{},\"metadata\":{metadata},\"items\":[", type_members(&info.list_kind, &version));
        text.extend_from_slice(head.as_bytes());
        for (place, kept) in self.items.iter().enumerate() {
            let members = kept.object.text().strip_prefix(types.as_bytes())?;
            text.extend_from_slice(if place > 0 { b",{" } else { b"{" });
            text.extend_from_slice(members);
        }
        text.extend_from_slice(b"]}\n");
        Some(text)
    }
}

impl Listing {
    /// Returns the List document. Items of built-in kinds do not repeat their kind.
    #[must_use]
    pub(crate) fn into_value(self, info: &ResourceInfo) -> Value {
        let metadata = self.metadata(info);
        let mut items = self.items;
        if info.builtin {
            for item in &mut items {
                object::set_field(item, "kind", None);
                object::set_field(item, "apiVersion", None);
            }
        }
        let kind = info.list_kind.as_str();
        if info.builtin {
            json!({"kind": kind, "apiVersion": info.api_version(), "metadata": metadata, "items": items})
        } else {
            // Unstructured lists have their members sorted by name.
            json!({"apiVersion": info.api_version(), "items": items, "kind": kind, "metadata": metadata})
        }
    }
}

/// Builds the metadata of a list; `always`: for custom resources, whose lists show an empty continue token.
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

/// The parsed options of a list.
struct Asked {
    selector: Selector,
    place: Option<Place>,
    at: Option<Revision>,
    /// Whether upstream answers from its cache, which tokens show.
    cached: bool,
    /// The page size; 0 for no limit.
    limit: usize,
}

impl Asked {
    fn range<'a>(&'a self, call: &'a Call) -> Range<'a> {
        Range { namespace: within(call), after: self.place.as_ref().map(Place::key), at: self.at }
    }
}

/// Returns the namespace of the call, if it has one.
fn within(call: &Call) -> Option<&str> {
    Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty())
}

impl Registry {
    /// # Errors
    /// 400 for invalid selectors and tokens, 410 if the token's state is gone, 500 for objects that cannot be
    /// converted.
    pub(crate) async fn list(&self, call: &Call, options: &ListOptions) -> Result<Listing, Refusal> {
        match call.converter() {
            Some(_) => self.list_converted(call, options).await,
            None => self.list_unconverted(call, options),
        }
    }

    /// Like [`Self::list`], for a kind that no webhook converts.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(crate) fn list_unconverted(&self, call: &Call, options: &ListOptions) -> Result<Listing, Refusal> {
        self.page(call, options, |selector, kept| {
            let object = kept.object.values();
            let otherwise = match storage_version::outgoing(call, &object)? {
                Cow::Owned(view) => Some(view),
                Cow::Borrowed(_) => None,
            };
            let taken = selector.matches(otherwise.as_ref().unwrap_or(&object));
            Ok(taken.then(|| otherwise.unwrap_or_else(|| Arc::unwrap_or_clone(object))))
        })
    }

    /// Returns the List document as text if that needs no parsing of objects: for built-in kinds that are read as
    /// they are stored. This takes a fraction of the time and memory.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(crate) fn list_text(&self, call: &Call, options: &ListOptions) -> Result<Option<Vec<u8>>, Refusal> {
        if !storage_version::is_read_as_stored(call) {
            return Ok(None);
        }
        let listing = self.page(call, options, |selector, kept| {
            Ok(selector.matches_stored(&kept.object).then(|| kept.clone()))
        })?;
        Ok(listing.text(&call.info))
    }

    /// Lists a page; `show` converts an object, and returns None if it is not selected.
    fn page<T>(
        &self,
        call: &Call,
        options: &ListOptions,
        mut show: impl FnMut(&Selector, &Kept) -> Result<Option<T>, ConversionError>,
    ) -> Result<Listing<T>, Refusal> {
        let asked = self.asked(call, options)?;
        let mut items = Vec::new();
        let mut unseen = None;
        let mut take = |kept: &Kept| match show(&asked.selector, kept) {
            Ok(shown) => {
                let taken = shown.is_some();
                items.extend(shown);
                taken
            }
            Err(error) => {
                unseen.get_or_insert(error);
                false
            }
        };
        let page = self
            .store
            .list(&call.info.storage_key, asked.range(call), asked.limit, &mut take)
            .map_err(|error| list_refusal(&error, asked.place.as_ref()))?;
        if let Some(error) = unseen {
            return Err(error.into());
        }
        Ok(Listing::of((page.revision, items), (page.items.last(), page.remaining), call, &asked))
    }

    /// Lists objects that a webhook converts, selected after conversion. They are converted in batches, up to the room in the page.
    async fn list_converted(&self, call: &Call, options: &ListOptions) -> Result<Listing, Refusal> {
        let asked = self.asked(call, options)?;
        let (selector, limit) = (&asked.selector, asked.limit);
        let page = self
            .store
            .list(&call.info.storage_key, asked.range(call), 0, &mut |_| true)
            .map_err(|error| list_refusal(&error, asked.place.as_ref()))?;
        let (mut items, mut looked_at) = (Vec::new(), 0_usize);
        let room = |taken: usize| if limit == 0 { usize::MAX } else { limit.saturating_sub(taken) };
        while room(items.len()) > 0 && looked_at < page.items.len() {
            let rest = page.items.get(looked_at..).unwrap_or_default();
            // Without a selector, no more are converted than shown.
            let most = if selector.is_empty() { room(items.len()) } else { usize::MAX };
            let (count, bytes) = batch(rest.iter().take(most).map(|kept| kept.object.text().len()));
            let _turn = match call.converter() {
                Some(webhook) => webhook.turn(bytes).await,
                None => None,
            };
            let together = rest.iter().take(count).map(|kept| kept.object.values()).collect();
            for view in self.all_shown(call, together).await? {
                if room(items.len()) == 0 {
                    break;
                }
                looked_at += 1;
                if selector.matches(&view) {
                    items.push(Arc::unwrap_or_clone(view));
                }
            }
        }
        let last = looked_at.checked_sub(1).and_then(|last| page.items.get(last));
        let remaining = page.items.len().saturating_sub(looked_at);
        Ok(Listing::of((page.revision, items), (last, remaining), call, &asked))
    }

    fn asked(&self, call: &Call, options: &ListOptions) -> Result<Asked, Refusal> {
        let selector = Selector::parse(&call.info, &options.label_selector, &options.field_selector)?;
        let place = resume(call, options)?;
        let at = match &place {
            Some(place) => place.revision,
            None => self.listed_revision(options)?,
        };
        // Upstream answers from the cache, except for an exact revision.
        let by_revision = match options.version_match {
            Some(VersionMatch::Exact) => true,
            Some(VersionMatch::NotOlderThan) => false,
            None => options.limit > 0 && !matches!(options.resource_version.as_str(), "" | "0"),
        };
        let cached = place.is_some() || at.is_some() || !by_revision;
        // With revision 0 upstream answers from the cache, without pages.
        let limit = if options.resource_version == "0" { 0 } else { options.limit };
        Ok(Asked { selector, place, at, cached, limit })
    }

    /// Estimates the bytes of [`Self::list`]'s result; an upper bound if there is a selector.
    pub(crate) fn weight(&self, call: &Call, options: &ListOptions) -> usize {
        let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let selects = !options.label_selector.is_empty() || !options.field_selector.is_empty();
        let most = if selects || options.limit == 0 { usize::MAX } else { options.limit };
        let (mut bytes, mut seen) = (0usize, 0);
        let mut weigh = |kept: &Kept| {
            if seen < most {
                bytes = bytes.saturating_add(kept.object.weight());
                seen += 1;
            }
            false
        };
        // A list that fails weighs nothing; the list itself reports the error.
        let _ =
            self.store.list(&call.info.storage_key, Range { namespace, ..Range::default() }, 0, &mut weigh);
        bytes
    }

    /// Estimates the bytes of one object; 0 if it does not exist.
    pub(crate) fn weight_of(&self, call: &Call, name: &str) -> usize {
        self.store.kept(&call.key(name)).map_or(0, |kept| kept.object.weight())
    }

    /// Checks that the store has reached the version.
    ///
    /// # Errors
    /// 500 for an invalid version, 504 for one that is not reached yet.
    pub(crate) fn check_version(&self, version: &str) -> Result<(), Refusal> {
        let asked = parse_version(version).map_err(|why| Refusal::unclassified(why.to_string()))?;
        let newest = self.store.revision();
        if asked > newest { Err(Refusal::too_large_version(asked, newest)) } else { Ok(()) }
    }

    fn listed_revision(&self, options: &ListOptions) -> Result<Option<Revision>, Refusal> {
        let asked = parse_version(&options.resource_version)
            .map_err(|why| Refusal::bad_request(format!("invalid resource version: {why}")))?;
        let exact = options.version_match == Some(VersionMatch::Exact)
            || (options.version_match.is_none() && options.limit > 0);
        if exact && asked > 0 {
            return Ok(Some(asked));
        }
        if asked > self.store.revision() {
            let newest = self.store.revision();
            return Err(Refusal::too_large_version(asked, newest));
        }
        Ok(None)
    }
}

/// The error of an invalid resourceVersion, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
#[error("resourceVersion: Invalid value: \"{0}\": strconv.ParseUint: parsing \"{0}\": invalid syntax")]
pub(super) struct NoVersion(String);

/// Parses a resourceVersion; 0 if it is absent.
pub(super) fn parse_version(text: &str) -> Result<Revision, NoVersion> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| NoVersion(text.to_owned()))
}

fn list_refusal(error: &StoreError, place: Option<&Place>) -> Refusal {
    match (error, place) {
        (StoreError::Compacted { .. }, Some(place)) => Refusal::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
             results. Continuing with the provided token results in an inconsistent list - objects that were created, \
             modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        )
        .with_continue(place.anew()),
        (StoreError::Compacted { .. }, None) => {
            Refusal::expired("The resourceVersion for the provided list is too old.")
        }
        (StoreError::Future { wanted, newest }, _) => Refusal::too_large_version(*wanted, *newest),
        (StoreError::Conflict(_) | StoreError::Backend(_), _) => super::store_failed(error),
    }
}

fn resume(call: &Call, options: &ListOptions) -> Result<Option<Place>, Refusal> {
    if options.continue_token.is_empty() {
        return Ok(None);
    }
    let place = Place::read(&options.continue_token, call)?;
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(Some(place))
}
