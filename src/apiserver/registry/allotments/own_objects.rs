//! Maintains the IPAddresses of services, and the objects that every cluster has: the ServiceCIDR, and the Service by which
//! pods reach the API server.

use std::collections::HashSet;
use std::net::IpAddr;

use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};

use super::ranges::{self, DEFAULT, ServiceNetwork, ServiceRange};
use super::{ADDRESSES, RANGES, SERVICES, address_key};
use crate::call::{Call, DeleteOptions, WriteOptions};
use crate::codec::recheck;
use crate::kinds::core::service::{allotment, node_ports};
use crate::object;
use crate::registry::Registry;
use crate::resources::Subresource;
use crate::status::Refusal;

/// The field manager of the ServiceCIDR's condition `Ready`.
const RANGE_MANAGER: &str = "kubernetes-service-cidr-controller";
const NETWORKING: &str = "networking.k8s.io";
/// The label of IPAddresses that the server created.
const MANAGED: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
/// The namespace of the Service by which pods reach the API server; its name is that of the range.
const NAMESPACE: &str = "default";

impl Registry {
    /// Creates what every cluster has, and reconciles addresses and ports with the stored services.
    ///
    /// # Errors
    /// If the store refuses an object.
    pub(crate) async fn open_allotments(&self) -> Result<(), Refusal> {
        self.make_range().await?;
        let mut given = HashSet::new();
        let mut missing = Vec::new();
        for kept in self.stored_objects(SERVICES, None) {
            let service = kept.object.values();
            self.allotments.taken().ports.extend(node_ports::held(&service));
            for (_, address) in allotment::addresses(&service) {
                given.insert(address.to_string());
                if self.store.latest(&address_key(address)).is_none() {
                    let (namespace, name) = (object::namespace(&service), object::name(&service));
                    missing.push((address, namespace.to_owned(), name.to_owned()));
                }
            }
        }
        for (address, namespace, name) in &missing {
            self.note_address(*address, namespace, name).await;
        }
        let left = self.stored_objects(ADDRESSES, None);
        let left = left.iter().map(|kept| kept.object.values());
        let left = left.filter(|own| is_ours(own) && !given.contains(object::name(own)));
        let names: Vec<String> = left.map(|own| object::name(&own).to_owned()).collect();
        join_all(names.iter().map(|name| self.delete_address(name))).await;
        self.make_own_service().await
    }

    /// Creates the Service by which pods reach the API server, if it does not exist.
    ///
    /// # Errors
    /// If the store refuses it.
    pub(super) fn make_own_service(&self) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            let Some(first) = self.default_range().map(ServiceRange::first) else { return Ok(()) };
            let ServiceNetwork { address, port, .. } = self.allotments.network;
            self.make(("", SERVICES), NAMESPACE, own_service(first, port)).await?;
            if let Some(address) = address.filter(|address| !address.is_loopback()) {
                self.make(("", "endpoints"), NAMESPACE, endpoints(address, port)).await?;
                self.make(("discovery.k8s.io", "endpointslices"), NAMESPACE, slice(address, port)).await?;
            }
            Ok(())
        })
    }

    /// Creates the Service by which pods reach the API server again when it was removed.
    pub(in crate::registry) async fn settle_own_service(&self, call: &Call, name: &str) {
        let is_it = super::is_service(call) && call.namespace == NAMESPACE && name == DEFAULT;
        if is_it && let Err(refusal) = self.make_own_service().await {
            tracing::warn!(%refusal, "the Service kubernetes is not made again");
        }
    }

    async fn make_range(&self) -> Result<(), Refusal> {
        let wanted = json!([self.allotments.network.range.to_string()]);
        let served = self.served();
        let Some(info) = served.table.find(NETWORKING, "v1", RANGES) else { return Ok(()) };
        let call = self.own_call(info, "").admitted();
        if let Some(stored) = self.store.latest(&call.key(DEFAULT)) {
            if stored.object["spec"]["cidrs"] != wanted {
                let kept = stored.object["spec"]["cidrs"].to_string();
                tracing::warn!(kept, asked = %wanted, "the state has another range of addresses of services, which stays");
            }
            return Ok(());
        }
        let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": DEFAULT}, "spec": {"cidrs": wanted}});
        self.make((NETWORKING, RANGES), "", range).await?;
        let ready = json!({"type": "Ready", "status": "True",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": object::seconds(self.clock.now())});
        let call = call.on(Some(Subresource::Status));
        self.apply_status(&call, DEFAULT, &json!({"conditions": [ready]}), RANGE_MANAGER).await
    }

    /// Returns the address ranges of services, that of the server first.
    pub(super) fn ranges(&self) -> Vec<ServiceRange> {
        let mut stored: Vec<_> =
            self.stored_objects(RANGES, None).iter().map(|kept| kept.object.values()).collect();
        stored.sort_by_key(|cidr| object::name(cidr) != DEFAULT);
        stored.iter().flat_map(|cidr| ranges::of(cidr)).collect()
    }

    fn default_range(&self) -> Option<ServiceRange> {
        self.ranges().first().copied()
    }

    /// Creates the IPAddress that assigns the address to the service.
    pub(super) async fn note_address(&self, address: IpAddr, namespace: &str, name: &str) {
        let family = if address.is_ipv6() { "IPv6" } else { "IPv4" };
        let (managed, by) = MANAGED;
        let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {"name": address,
                "labels": {"ipaddress.kubernetes.io/ip-family": family, managed: by}},
            "spec": {"parentRef": {"resource": SERVICES, "namespace": namespace, "name": name}}});
        if let Err(refusal) = self.make((NETWORKING, ADDRESSES), "", object).await {
            tracing::warn!(%refusal, %address, namespace, name, "the IPAddress of a Service is not made");
        }
    }

    /// Removes the IPAddress if it belongs to this service.
    pub(super) async fn forget_address(&self, address: IpAddr, namespace: &str, name: &str) {
        let Some(stored) = self.store.latest(&address_key(address)) else { return };
        let parent = &stored.object["spec"]["parentRef"];
        if is_ours(&stored.object) && parent["namespace"] == namespace && parent["name"] == name {
            self.delete_address(object::name(&stored.object)).await;
        }
    }

    async fn delete_address(&self, name: &str) {
        let served = self.served();
        let Some(info) = served.table.find(NETWORKING, "v1", ADDRESSES) else { return };
        let call = self.own_call(info, "").admitted();
        match Box::pin(self.delete(&call, name, &DeleteOptions::default())).await {
            Err(refusal) if refusal.reason() != "NotFound" => {
                tracing::warn!(%refusal, name, "the IPAddress of a Service that is gone is left");
            }
            _ => {}
        }
    }

    /// Creates an object if none of its name exists.
    pub(in crate::registry) async fn make(
        &self,
        (group, plural): (&str, &str),
        namespace: &str,
        object: Value,
    ) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find(group, "v1", plural) else { return Ok(()) };
        let call = self.own_call(info, namespace).admitted();
        if self.store.latest(&call.key(object::name(&object))).is_some() {
            return Ok(());
        }
        let received = recheck(info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
        match self.create(&call, received.object, &WriteOptions::own()).await {
            Err(refusal) if refusal.reason() != "AlreadyExists" => Err(refusal),
            _ => Ok(()),
        }
    }
}

fn own_service(address: IpAddr, port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": DEFAULT, "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"type": "ClusterIP", "clusterIP": address, "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]}})
}

fn endpoints(address: IpAddr, port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": DEFAULT, "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}]})
}

fn slice(address: IpAddr, port: u16) -> Value {
    let family = if address.is_ipv6() { "IPv6" } else { "IPv4" };
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": DEFAULT, "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": DEFAULT}},
        "addressType": family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}]})
}

fn is_ours(address: &Value) -> bool {
    object::label(address, MANAGED.0) == Some(MANAGED.1)
}
