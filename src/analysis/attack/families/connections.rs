//! Connects to the same target in another way, as by `attach` to the pod for which `exec` is denied, or through a service to its
//! backend.
//!
//! The effect is the same where it leads to the same object, or where another kind's connect options have the same type. The denied
//! option must be set there too; if the rules read no object, the connection itself is what is denied. A rule that names the connecting
//! subresource without the CONNECT operation leaves it open.

use admit_policy::{Connection, GroupVersionResource, Operation, ServedKind};
use serde_json::{Value, json};

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::path::Step;
use super::super::scene::{Neighbour, Scene};

/// The namespace in which other kinds' objects are looked for, if the denied one is cluster-scoped.
const NAMESPACE: &str = "default";

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let Some(own) = resource(scene) else { return };
    if scene.base.operation != Operation::Connect {
        if scene.offence.is_of_request() {
            let named = own.connections.iter().filter(|one| is_named(scene, own, &one.subresource));
            out.extend(named.filter_map(|one| not_denied(scene, own, one)));
        }
        return;
    }
    let Some(denied) = own.connections.iter().find(|one| one.subresource == scene.base.subresource) else {
        return;
    };
    for other in own.connections.iter().filter(|other| *other != denied) {
        let what = format!(
            "{} to {} is denied, and {} leads to the same {}",
            denied.subresource, own.plural, other.subresource, own.kind.kind
        );
        out.extend(neighbour(scene, (own, other), (Family::Subresources, other.subresource.clone()), what));
    }
    for kind in scene.types.builtin().filter(|kind| kind.served.kind != own.kind) {
        for other in kind.served.connections.iter().filter(|other| other.shape == denied.shape) {
            let path = format!("{}/{}", kind.served.plural, other.subresource);
            let what = format!(
                "what is asked of {}/{} is denied, and admitted of {path}",
                own.plural, denied.subresource
            );
            out.extend(neighbour(scene, (kind.served, other), (Family::Subresources, path), what));
        }
    }
}

/// Returns the resource of the denied request.
fn resource<'s>(scene: &Scene<'s>) -> Option<&'s ServedKind> {
    let GroupVersionResource { group, version, resource } = &scene.base.resource;
    let all = scene.types.of_plural(resource);
    all.into_iter().find(|served| served.kind.group == *group && served.kind.version == *version)
}

/// Reports whether a rule of the policy names a subresource, for any operation.
fn is_named(scene: &Scene<'_>, own: &ServedKind, subresource: &str) -> bool {
    let has = |list: &[String], name: &str| list.iter().any(|one| one == "*" || one == name);
    scene.judge.policy.constraints.rules.iter().any(|rule| {
        let names = |resource: &String| {
            let (plural, below) = resource.split_once('/').unwrap_or((resource, ""));
            (plural == "*" || plural == own.plural) && (below == "*" || below == subresource)
        };
        has(&rule.groups, &own.kind.group)
            && has(&rule.versions, &own.kind.version)
            && rule.resources.iter().any(names)
    })
}

fn not_denied(scene: &Scene<'_>, own: &ServedKind, connection: &Connection) -> Option<Neighbour> {
    let name = format!("{}/{}", own.plural, connection.subresource);
    let what = format!(
        "{} is denied, and CONNECT {name} is admitted: rules name the subresource, and not how it is asked for",
        scene.base.title()
    );
    neighbour(scene, (own, connection), (Family::Operations, format!("CONNECT {name}")), what)
}

fn neighbour(
    scene: &Scene<'_>,
    (kind, connection): (&ServedKind, &Connection),
    (family, path): (Family, String),
    what: String,
) -> Option<Neighbour> {
    if (scene.over)() {
        return None;
    }
    let ask = asked(scene, kind, connection)?;
    scene.is_admitted(&ask, &scene.offence.path).then_some(Neighbour { family, path, what, ask, first: None })
}

/// Returns the connect request with those options of the denied one that it has; `None` if it is denied for an option that it lacks.
fn asked(scene: &Scene<'_>, kind: &ServedKind, connection: &Connection) -> Option<Ask> {
    let fields = scene.types.fields(connection.shape);
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    if let Some(first) = scene.offence.path.0.first()
        && !matches!(first, Step::Name(name) if has(name))
    {
        return None;
    }
    let mut object = json!({"kind": connection.kind.kind, "apiVersion": connection.kind.api_version()});
    if let (Value::Object(own), Operation::Connect, Some(there)) =
        (scene.object, scene.base.operation, object.as_object_mut())
    {
        there.extend(
            own.iter().filter(|(name, _)| has(name)).map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    let namespace = match scene.base.namespace.as_str() {
        _ if !kind.namespaced => "",
        "" => NAMESPACE,
        namespace => namespace,
    };
    Some(Ask {
        operation: Operation::Connect,
        resource: GroupVersionResource::new(&*kind.kind.group, &*kind.kind.version, kind.plural.as_str()),
        subresource: connection.subresource.clone(),
        namespace: namespace.to_owned(),
        name: scene.base.name().to_owned(),
        object: Some(object),
        old_object: None,
        ..scene.base.clone()
    })
}
