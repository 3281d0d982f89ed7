//! The whole chain with the real kubectl: an API server, our manifests in it, and our programs beside it.
//!
//! The scenarios are the same for two API servers: the embedded one, always; and, where `KUBEBUILDER_ASSETS` names a
//! folder with `etcd` and `kube-apiserver` (the convention of envtest), a real one. Each leaves the API server as it was.

mod apiserver;
mod cluster;
mod controllers;
mod from_files;
mod helm;
mod install;
mod managed;
mod rollout;
mod systems;
mod users;
mod webhook;
mod words;

use std::path::Path;

use self::apiserver::ApiServer;
use crate::tour::has_kubectl;

/// Played one after the other: all of them work in the same cluster. The chart comes first, to where nothing is. Those with stored policies that take their params from
/// ConfigMaps come last, the words first: once no such policy is left, kube-apiserver stops to follow ConfigMaps for good, and
/// sees no params that are made afterwards.
const SCENARIOS: &[fn(&ApiServer)] = &[
    helm::the_chart_comes_and_goes,
    install::manifests_are_taken,
    controllers::follow_one_another,
    users::the_tour_is_the_same,
    users::the_plugin_takes_live_objects,
    managed::certificates_reach_the_api_server,
    webhook::denies_rotates_and_comes_back,
    webhook::is_called_behind_its_service,
    words::are_those_of_stored_policies,
    rollout::steps_differ_in_what_the_author_hears,
    managed::stored_policies_are_followed,
];

#[test]
fn the_embedded_api_server() {
    if has_kubectl() {
        play(&ApiServer::embedded());
    }
}

#[test]
fn a_real_api_server() {
    match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) if has_kubectl() => play(&ApiServer::real(Path::new(&assets))),
        Some(_) => (),
        None => testing::skip(
            testing::Need::Apiserver,
            "KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver",
        ),
    }
}

#[test]
fn each_system_lives_once_in_the_embedded_api_server() {
    if has_kubectl() {
        systems::each_lives_once(&ApiServer::embedded());
    }
}

#[test]
fn each_system_lives_once_in_a_real_api_server() {
    match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) if has_kubectl() => systems::each_lives_once(&ApiServer::real(Path::new(&assets))),
        Some(_) => (),
        None => testing::skip(
            testing::Need::Apiserver,
            "KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver",
        ),
    }
}

fn play(api: &ApiServer) {
    for scenario in SCENARIOS {
        scenario(api);
    }
}
