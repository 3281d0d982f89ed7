//! Determines the user that the `Impersonate-*` headers name, and checks that the caller may impersonate
//! this user.
//!
//! A caller may be allowed to impersonate in a mode (`impersonate:user-info` and others) for single verbs, or
//! without restriction (`impersonate`). The modes are tried first; a caller that may use none is refused with the message
//! of the first.

use admit_apimachinery::{
    go::quote::{quote, quote_all},
    names::{dns1123_label, dns1123_subdomain},
};
use std::collections::BTreeMap;

use admit_policy::AccessAttributes;
use http::HeaderMap;

use crate::authorization::{refused, resource_access};
use crate::call::unescape;
use crate::identity::Identity;
use crate::registry::Registry;
use crate::status::Refusal;

const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The user that the headers name.
struct Wanted {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// A mode of impersonation: its suffix in verbs, empty for the unrestricted one.
#[derive(Clone, Copy)]
struct Mode(&'static str);

const OUTRIGHT: Mode = Mode("");

/// The most modes that are tried.
const MODES: usize = 2;

/// Returns the identity that the request acts as: the caller's `own`, or the impersonated one.
///
/// # Errors
/// 400 for headers that name no user, 403 if the caller may not impersonate the user.
pub(super) fn acting(
    registry: &Registry,
    own: Identity,
    headers: &HeaderMap,
    request: &AccessAttributes,
) -> Result<Identity, Refusal> {
    let Some(wanted) = Wanted::read(headers)? else { return Ok(own) };
    let mut first = None;
    for mode in wanted.modes() {
        match wanted.checked(registry, &own, mode, request) {
            Ok(identity) => return Ok(identity),
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    Err(first.unwrap_or_else(|| Refusal::internal("no way to impersonate")))
}

/// Returns the number of access checks that [`acting`] may need.
pub(super) fn questions(headers: &HeaderMap) -> usize {
    let named = headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-")).count();
    // For each mode, one check for each name and one for the request.
    if named == 0 { 0 } else { (named + 1) * MODES }
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let texts = |name: &str| -> Vec<String> {
            let values = headers.get_all(name).iter();
            // A value that is not UTF-8 still counts as a name: otherwise the caller would act as itself.
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
        };
        let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
        let extra = headers.keys().filter_map(|name| {
            let key = name.as_str().strip_prefix(EXTRA)?;
            Some((unescape(key).unwrap_or_else(|| key.to_owned()), texts(name.as_str())))
        });
        let wanted = Self {
            user: first("impersonate-user"),
            uid: first("impersonate-uid"),
            groups: texts("impersonate-group"),
            extra: extra.collect(),
        };
        if !wanted.user.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
            return Ok(None);
        }
        let why = format!("requested {} without impersonating a user name", wanted.as_go());
        Err(Refusal::bad_request(why))
    }

    /// Formats the value as Go does.
    fn as_go(&self) -> String {
        let list = |items: &[String]| format!("[]string{{{}}}", quote_all(items, ", "));
        let groups = if self.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&self.groups) };
        let extra: Vec<String> =
            self.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
        let extra = match extra.as_slice() {
            [] => "map[string][]string(nil)".to_owned(),
            extra => format!("map[string][]string{{{}}}", extra.join(", ")),
        };
        format!("&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}}", quote(&self.uid))
    }

    fn account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        let is_one = dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty();
        is_one.then_some((namespace, name))
    }

    fn node(&self) -> Option<&str> {
        let name = self.user.strip_prefix("system:node:")?;
        dns1123_subdomain(name).is_empty().then_some(name)
    }

    fn modes(&self) -> Vec<Mode> {
        let user_alone = self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty();
        match (self.node(), self.account()) {
            (Some(_), _) if user_alone => vec![Mode("arbitrary-node"), OUTRIGHT],
            (_, Some(_)) if user_alone => vec![Mode("serviceaccount"), OUTRIGHT],
            (None, None) => vec![Mode("user-info"), OUTRIGHT],
            _ => vec![OUTRIGHT],
        }
    }

    fn checked(
        &self,
        registry: &Registry,
        own: &Identity,
        mode: Mode,
        request: &AccessAttributes,
    ) -> Result<Identity, Refusal> {
        let narrow = !mode.0.is_empty();
        if narrow {
            registry.authorize(own, &on(mode, request))?;
        }
        let verb = if narrow { format!("impersonate:{}", mode.0) } else { "impersonate".to_owned() };
        let group = if narrow { AUTHENTICATION } else { "" };
        let ask = |group: &str, resource: &str, subresource: &str, name: &str| {
            let mut asked = resource_access(&verb, group, resource, name);
            if let AccessAttributes::Resource { subresource: part, .. } = &mut asked {
                subresource.clone_into(part);
            }
            asked
        };
        let user = match (self.account(), self.node().filter(|_| narrow)) {
            (Some((namespace, name)), _) => in_namespace(ask(group, "serviceaccounts", "", name), namespace),
            (None, Some(name)) => ask(group, "nodes", "", name),
            (None, None) => ask(group, "users", "", &self.user),
        };
        registry.authorize(own, &user)?;
        if !self.uid.is_empty() {
            registry.authorize(own, &ask(AUTHENTICATION, "uids", "", &self.uid))?;
        }
        for name in &self.groups {
            let asked = ask(group, "groups", "", name);
            if narrow && name == crate::identity::MASTERS {
                return Err(refused(own, &asked, "impersonating the system:masters group is not allowed"));
            }
            registry.authorize(own, &asked)?;
        }
        for (key, value) in
            self.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)))
        {
            registry.authorize(own, &ask(AUTHENTICATION, "userextras", key, value))?;
        }
        Ok(self.identity(narrow))
    }

    fn identity(&self, narrow: bool) -> Identity {
        let mut groups = self.groups.clone();
        match (self.account(), self.node()) {
            // Service accounts and nodes belong to the groups of their kind implicitly.
            (Some((namespace, _)), _) if groups.is_empty() => {
                groups.push("system:serviceaccounts".to_owned());
                groups.push(format!("system:serviceaccounts:{namespace}"));
            }
            (None, Some(_)) if narrow => groups.push("system:nodes".to_owned()),
            _ => {}
        }
        let has = |name: &str| groups.iter().any(|group| group == name);
        let certain = if self.user == "system:anonymous" { UNAUTHENTICATED } else { AUTHENTICATED };
        if !has(certain) && !has(UNAUTHENTICATED) {
            groups.push(certain.to_owned());
        }
        Identity { username: self.user.clone(), uid: self.uid.clone(), groups, extra: self.extra.clone() }
    }
}

/// Returns the attributes of the request itself, for a check whether it may be done in a mode.
fn on(mode: Mode, request: &AccessAttributes) -> AccessAttributes {
    let mut asked = request.clone();
    let (AccessAttributes::Resource { verb, .. } | AccessAttributes::Path { verb, .. }) = &mut asked;
    *verb = format!("impersonate-on:{}:{verb}", mode.0);
    asked
}

fn in_namespace(mut asked: AccessAttributes, of: &str) -> AccessAttributes {
    if let AccessAttributes::Resource { namespace, .. } = &mut asked {
        of.clone_into(namespace);
    }
    asked
}
