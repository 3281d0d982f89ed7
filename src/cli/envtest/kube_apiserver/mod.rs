//! Runs this program as `kube-apiserver`: accepts the flags that test harnesses pass, and serves the objects that `etcd`
//! (also this program) points to.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

use admit_apiserver::store::{RedbBackend, Store, UnsyncedFile};
use admit_apiserver::{
    AdmissionPlugins, AuditLog, AuthorizationMode, Controllers, Server, ServerBuilder, ServiceNetwork,
    ServiceRange,
};
use tokio_util::sync::CancellationToken;

use self::program::PROGRAM;
use super::assets;
use super::flags::{Ended, Given};
use super::handover::{self, Handover};
use super::serving_pair::ServingPair;
use super::{keys, users};
use crate::cli::Exit;
use crate::cli::admission_configuration;
use crate::cli::process::{self, Fault, GRACE, Threads};
use crate::telemetry::LogFormat;

mod audit;
mod features;
mod program;

pub(super) fn run(program: &Path, args: &[OsString]) -> Exit {
    let asked = match PROGRAM.parse(args) {
        Ok(given) => Asked::read(given, program),
        Err(Ended::Told(exit)) => return exit,
        Err(Ended::Fault(fault)) => Err(fault),
    };
    match asked {
        Ok(asked) => process::run(Threads::Work, LogFormat::Text, GRACE, |shutdown| asked.serve(shutdown)),
        Err(fault) => process::fail(&fault),
    }
}

/// The results of flags that can be evaluated before the server starts.
struct Asked {
    given: Given,
    listen: SocketAddr,
    etcd: SocketAddr,
    builder: ServerBuilder,
    /// The address for clients on other machines.
    advertised: Option<IpAddr>,
    audit: Option<AuditLog>,
    range: ServiceRange,
}

impl Asked {
    fn read(given: Given, program: &Path) -> Result<Self, Fault> {
        check_fixed(&given)?;
        let port = given
            .parsed(
                "secure-port",
                "a port between 1 and 65535, inclusive; it cannot be turned off with 0",
                |text| text.parse().ok().filter(|port| *port != 0),
            )?
            .unwrap_or(6443);
        let address = |flag| given.parsed(flag, "an IP address", |text| text.parse::<IpAddr>().ok());
        let bind = address("bind-address")?.unwrap_or_else(|| [0, 0, 0, 0].into());
        let advertised = address("advertise-address")?.or_else(|| {
            if bind.is_unspecified() || bind.is_loopback() { own_address(bind) } else { Some(bind) }
        });
        let range = match given.last("service-cluster-ip-range") {
            None => ServiceRange::default(),
            Some(text) => text
                .parse()
                .map_err(|error| Fault::usage(format!("--service-cluster-ip-range: `{text}`: {error}")))?,
        };
        let mut builder = decided(&given, program)?;
        let audit = audit::log(&given)?;
        if let Some(audit) = &audit {
            builder = builder.audit_log(audit.clone());
        }
        Ok(Self {
            listen: SocketAddr::new(bind, port),
            etcd: etcd(&given)?,
            builder,
            advertised,
            audit,
            range,
            given,
        })
    }

    async fn serve(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let Self { given, listen, etcd, builder, advertised, audit, range } = self;
        if anonymous_asked(&given)? && authorization(&given)?.contains(&AuthorizationMode::AlwaysAllow) {
            tracing::warn!(
                "--anonymous-auth: requests without credentials are refused where AlwaysAllow decides"
            );
        }
        let addresses: Vec<IpAddr> = [Some(listen.ip()).filter(|ip| !ip.is_unspecified()), advertised]
            .into_iter()
            .flatten()
            .chain([range.first(), [127, 0, 0, 1].into()])
            .collect();
        let pair = ServingPair::open(&given, &addresses)?;
        let tls = pair.config(&given)?;
        let mut builder = with_tokens(builder, &given, &pair)?;
        if let Some(path) = given.path("client-ca-file") {
            builder = builder.client_authorities(keys::text("client-ca-file", &path)?);
        }
        builder = with_proxy_client(builder, &given)?;
        let listener = process::listen(listen, "--bind-address and --secure-port")?;
        let Some(handover) = shutdown.run_until_cancelled(handover::ask(etcd)).await else { return Ok(()) };
        let network = ServiceNetwork { range, address: advertised, port: listen.port() };
        let server = builder.store(store(&handover?)?).service_network(network).build().await;
        let server = server.map_err(Fault::internal)?;
        let serving = server.serve(listener, tls, shutdown.clone().cancelled_owned());
        tracing::info!(address = %listen, "serving securely");
        let keeping = async {
            server.housekeeping().await;
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = serving => ended.map_err(Fault::internal),
            () = keeping => Ok(()),
            () = handover::ended(etcd) => {
                Err(Fault::internal(format!("the etcd at {etcd} has ended, whose objects these are")))
            }
        };
        if let Some(audit) = audit {
            audit.settle();
        }
        ended
    }
}

/// Checks flags that may only have the value that is always in effect.
fn check_fixed(given: &Given) -> Result<(), Fault> {
    let so = ["true", "t", "T", "TRUE", "True", "1"];
    given.must_be("service-account-lookup", &so, "tokens end with their account; leave it out")?;
    given.must_be(
        "enable-aggregator-routing",
        &so,
        "webhooks of a Service are called at its endpoints; leave it out",
    )?;
    given.must_be(
        "storage-backend",
        &["etcd3"],
        "objects lie where this program's etcd says; leave it out",
    )?;
    given.must_be(
        "storage-media-type",
        &["", "application/json"],
        "objects lie there as JSON; leave it out",
    )?;
    given.must_be(
        "profiling",
        &["false", "f", "F", "FALSE", "False", "0"],
        "nothing is profiled; leave it out",
    )?;
    given.parsed("v", "a number", |text| text.parse::<i32>().ok())?;
    features::check(given)?;
    let ports = "node ports are given from 30000-32767; leave it out";
    given.must_be("service-node-port-range", &["30000-32767"], ports)
}

fn etcd(given: &Given) -> Result<SocketAddr, Fault> {
    match given.list("etcd-servers").as_slice() {
        [one] => handover::local("etcd-servers", one),
        [] => {
            Err(Fault::usage("--etcd-servers must be specified: the URL of the `etcd` beside this program"))
        }
        _ => Err(Fault::usage("--etcd-servers: one is taken; this program's etcd has one member")),
    }
}

/// Configures authentication, authorization and admission.
fn decided(given: &Given, program: &Path) -> Result<ServerBuilder, Fault> {
    let configuration = given.path("admission-control-config-file");
    let plugins = AdmissionPlugins::configured(
        given.list("enable-admission-plugins"),
        given.list("disable-admission-plugins"),
        &admission_configuration::read(configuration.as_deref())?,
    );
    let plugins =
        plugins.map_err(|error| admission_configuration::fault(&error, configuration.as_deref()))?;
    let chosen = assets::chosen_controllers(program);
    let mut controllers = given.list("controllers");
    if controllers.is_empty() {
        controllers = chosen.iter().flat_map(|chosen| chosen.split(',')).collect();
    }
    let controllers =
        Controllers::named(controllers).map_err(|error| Fault::usage(format!("--controllers: {error}")))?;
    let authorization = authorization(given)?;
    let mut builder = Server::builder()
        .admission_plugins(plugins)
        .controllers(controllers)
        .allow_privileged(given.switch("allow-privileged")?.unwrap_or(false))
        // As in kube-apiserver: with AlwaysAllow, anonymous users could do everything.
        .anonymous(anonymous_asked(given)? && !authorization.contains(&AuthorizationMode::AlwaysAllow))
        .authorization(authorization);
    if let Some(path) = given.path("token-auth-file") {
        let flag = "token-auth-file";
        let users =
            users::read(&keys::text(flag, &path)?).map_err(|error| keys::wrong(flag, &path, &error))?;
        for (token, identity) in users {
            builder = builder.token(token, identity);
        }
    }
    Ok(builder)
}

fn anonymous_asked(given: &Given) -> Result<bool, Fault> {
    Ok(given.switch("anonymous-auth")?.unwrap_or(true))
}

/// Returns the authorization modes in their order.
fn authorization(given: &Given) -> Result<Vec<AuthorizationMode>, Fault> {
    let mut modes = Vec::new();
    for name in given.list("authorization-mode") {
        let mode = match name {
            "AlwaysAllow" => AuthorizationMode::AlwaysAllow,
            "Node" => AuthorizationMode::Node,
            "RBAC" => AuthorizationMode::Rbac,
            other => {
                return Err(Fault::usage(format!(
                    "--authorization-mode: `{other}` is not built; Node, RBAC and AlwaysAllow are, so leave it out"
                )));
            }
        };
        if modes.contains(&mode) {
            return Err(Fault::usage(format!("--authorization-mode: `{name}` is given more than once")));
        }
        modes.push(mode);
    }
    // The default of kube-apiserver.
    Ok(if modes.is_empty() { vec![AuthorizationMode::AlwaysAllow] } else { modes })
}

/// Configures the keys and the issuers of service account tokens.
fn with_tokens(builder: ServerBuilder, given: &Given, pair: &ServingPair) -> Result<ServerBuilder, Fault> {
    let mut builder = builder.trusted_token_keys(keys::trusted(given, &pair.key)?);
    if let Some(key) = keys::signing(given)? {
        builder = builder.token_key(key);
    }
    for issuer in given.all("service-account-issuer") {
        // Upstream accepts any string without a colon.
        if issuer.contains(':') {
            admit_apimachinery::go::url::parse(issuer)
                .map_err(|error| Fault::usage(format!("--service-account-issuer: {error}")))?;
        }
        builder = builder.issuer(issuer);
    }
    Ok(builder.audiences(given.list("api-audiences").into_iter().map(ToOwned::to_owned)))
}

/// Configures the client certificate for the servers of APIServices.
fn with_proxy_client(builder: ServerBuilder, given: &Given) -> Result<ServerBuilder, Fault> {
    let [certificate, key] = ["proxy-client-cert-file", "proxy-client-key-file"];
    match (given.path(certificate), given.path(key)) {
        (None, None) => Ok(builder),
        (Some(of_certificate), Some(of_key)) => {
            let pair = (keys::text(certificate, &of_certificate)?, keys::text(key, &of_key)?);
            builder.proxy_client(pair.0, pair.1).map_err(|error| {
                let (of_certificate, of_key) = (of_certificate.display(), of_key.display());
                Fault::usage(format!(
                    "--{certificate} `{of_certificate}` and --{key} `{of_key}`: {error}; give a certificate and its private \
                     key, both PEM"
                ))
            })
        }
        _ => Err(Fault::usage(format!("--{certificate} and --{key} belong together: give both, or neither"))),
    }
}

fn store(handover: &Handover) -> Result<Store, Fault> {
    let Handover { path, unsynced } = handover;
    let opened = if *unsynced {
        RedbBackend::over(UnsyncedFile::new(path)).and_then(|backend| Store::open(Box::new(backend)))
    } else {
        RedbBackend::open(path).and_then(|backend| Store::open(Box::new(backend)))
    };
    opened.map_err(|error| Fault::usage(format!("{error}; one kube-apiserver at a time can use an etcd")))
}

/// Returns the address that this machine's routes use for outgoing connections, if any. Nothing is sent.
fn own_address(bind: IpAddr) -> Option<IpAddr> {
    // Addresses from the ranges for documentation, which nobody has.
    let (any, elsewhere) = match bind {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(elsewhere).ok()?;
    socket.local_addr().ok().map(|own| own.ip()).filter(|own| !own.is_loopback() && !own.is_unspecified())
}
