//! Lists the flags of kube-apiserver: those that are implemented, and those that are known and not implemented.

use crate::cli::envtest::flags::{Flag, NotBuilt, Program, Spelling};

pub(super) const PROGRAM: Program = Program {
    name: "kube-apiserver",
    about: "admit in the place of kube-apiserver, for test harnesses",
    version: "v1.36.2+admit",
    flags: FLAGS,
    not_built: NOT_BUILT,
    spelling: Spelling::Kubernetes,
};

const FLAGS: &[Flag] = &[
    Flag {
        name: "admission-control-config-file",
        value: "FILE",
        help: "What admission plugins are set to: an AdmissionConfiguration",
    },
    Flag {
        name: "advertise-address",
        value: "IP",
        help: "Address of the endpoint of Service default/kubernetes [default: the bind address, or this machine's]",
    },
    Flag {
        name: "allow-privileged",
        value: "",
        help: "Let privileged containers in; else they are refused in pods and templates of pods [default: false]",
    },
    Flag {
        name: "anonymous-auth",
        value: "",
        help: "Answer requests without credentials; never where AlwaysAllow decides [default: true]",
    },
    Flag {
        name: "api-audiences",
        value: "NAMES",
        help: "Audiences of tokens that mean this server [default: the issuers]",
    },
    Flag {
        name: "audit-log-format",
        value: "FORMAT",
        help: "json for whole events, or legacy for a line of words about each [default: json]",
    },
    Flag {
        name: "audit-log-maxage",
        value: "DAYS",
        help: "Days for which old audit logs are kept, 0 for ever [default: 366]",
    },
    Flag {
        name: "audit-log-maxbackup",
        value: "FILES",
        help: "Old audit logs that are kept, 0 for all [default: 100]",
    },
    Flag {
        name: "audit-log-maxsize",
        value: "MEGABYTES",
        help: "Size at which an audit log is put aside and a new one begun, 0 for never [default: 100]",
    },
    Flag {
        name: "audit-log-path",
        value: "FILE",
        help: "Audit log, of the requests that the policy names; `-` is standard output",
    },
    Flag { name: "audit-log-version", value: "VERSION", help: "Has to be audit.k8s.io/v1" },
    Flag {
        name: "audit-policy-file",
        value: "FILE",
        help: "Which requests are in the audit log, and how much of them; without one, none is",
    },
    Flag {
        name: "authorization-mode",
        value: "MODES",
        help: "Node, RBAC or AlwaysAllow, with commas between [default: AlwaysAllow]",
    },
    Flag { name: "bind-address", value: "IP", help: "Address to listen on [default: 0.0.0.0]" },
    Flag {
        name: "cert-dir",
        value: "DIR",
        help: "Folder of apiserver.crt and apiserver.key, made if they are not there [default: /var/run/kubernetes]",
    },
    Flag {
        name: "client-ca-file",
        value: "FILE",
        help: "Authorities whose client certificates are known: common name is the user, organizations the groups",
    },
    Flag {
        name: "controllers",
        value: "NAMES",
        help: "Controllers of kube-controller-manager to run here: namespace, garbage-collector, serviceaccount, \
               root-ca-cert-publisher, resourcequota, validatingadmissionpolicy-status, or `*` [default: none]",
    },
    Flag { name: "disable-admission-plugins", value: "NAMES", help: "Plugins that are off" },
    Flag {
        name: "enable-admission-plugins",
        value: "NAMES",
        help: "Plugins that are on beside the usual ones",
    },
    Flag {
        name: "enable-aggregator-routing",
        value: "",
        help: "Reach Services at their endpoints, as is always done",
    },
    Flag { name: "etcd-servers", value: "URL", help: "Where this program answers as etcd" },
    Flag {
        name: "feature-gates",
        value: "GATES",
        help: "NAME=BOOL, with commas between: may say only what Kubernetes 1.36 has anyway",
    },
    Flag { name: "profiling", value: "", help: "Has to be false, as nothing is profiled" },
    Flag {
        name: "runtime-config",
        value: "VERSIONS",
        help: "GROUP/VERSION=BOOL, with commas between: may say only what is so, as api/ga=true and api/beta=false do",
    },
    Flag { name: "secure-port", value: "PORT", help: "Port to listen on [default: 6443]" },
    Flag {
        name: "service-account-issuer",
        value: "URL",
        help: "Name of this server in tokens; the first is used, and all are believed",
    },
    Flag {
        name: "service-account-key-file",
        value: "FILE",
        help: "Keys that tokens are believed of: RSA or ECDSA, public, private or in certificates, PEM",
    },
    Flag {
        name: "service-account-lookup",
        value: "",
        help: "End tokens with their account, as is always done",
    },
    Flag {
        name: "service-account-signing-key-file",
        value: "FILE",
        help: "Key that tokens are signed with: RSA or ECDSA, PEM [default: one of this process' own]",
    },
    Flag {
        name: "service-cluster-ip-range",
        value: "CIDR",
        help: "Addresses of IPv4 that Services get theirs from [default: 10.0.0.0/24]",
    },
    Flag { name: "service-node-port-range", value: "RANGE", help: "Has to be 30000-32767" },
    Flag { name: "storage-backend", value: "NAME", help: "Has to be etcd3" },
    Flag { name: "storage-media-type", value: "TYPE", help: "Has to be application/json" },
    Flag { name: "tls-cert-file", value: "FILE", help: "Serving certificate, with its chain, PEM" },
    Flag { name: "tls-private-key-file", value: "FILE", help: "Key of the serving certificate, PEM" },
    Flag {
        name: "token-auth-file",
        value: "FILE",
        help: "Users by bearer token: token, name, uid and \"groups\" on each line",
    },
    Flag { name: "v", value: "LEVEL", help: "Any number: RUST_LOG says how much is logged" },
    Flag {
        name: "vmodule",
        value: "PATTERNS",
        help: "Any: RUST_LOG says what is logged, as in admit_apiserver=debug",
    },
];

const NOT_BUILT: &[NotBuilt] = &[
    NotBuilt { names: &["insecure-"], instead: "kube-apiserver has not had it since 1.24; leave it out" },
    NotBuilt {
        names: &[
            "emulated-version",
            "emulation-forward-compatible",
            "min-compatibility-version",
            "runtime-config-",
        ],
        instead: "what is served, and how, is that of Kubernetes 1.36 without any of these; leave it out",
    },
    NotBuilt {
        names: &[
            "log-",
            "logging-format",
            "contention-profiling",
            "debug-socket-path",
            "tracing-config-file",
        ],
        instead: "set RUST_LOG for more of the log, as in RUST_LOG=admit_apiserver=debug",
    },
    NotBuilt {
        names: &["audit-"],
        instead: "audit events go to a file or to standard output (--audit-log-path), whole, and as they come; leave it out",
    },
    NotBuilt {
        names: &["oidc-", "authentication-", "requestheader-", "enable-bootstrap-token-auth"],
        instead: "users come by client certificate (--client-ca-file), token (--token-auth-file) or account",
    },
    NotBuilt {
        names: &["authorization-"],
        instead: "who may do what is said by Node, RBAC or AlwaysAllow (--authorization-mode)",
    },
    NotBuilt {
        names: &["admission-control"],
        instead: "choose among plugins with --enable- and --disable-admission-plugins",
    },
    NotBuilt {
        names: &[
            "service-account-extend-token-expiration",
            "service-account-jwks-uri",
            "service-account-max-token-expiration",
            "service-account-signing-endpoint",
        ],
        instead: "tokens live as long as they are asked to, and are signed by --service-account-signing-key-file",
    },
    NotBuilt {
        names: &[
            "etcd-",
            "encryption-",
            "storage-",
            "delete-collection-workers",
            "watch-",
            "default-watch-cache-size",
            "lease-reuse-duration-seconds",
        ],
        instead: "objects lie where this program's etcd says, as it likes; leave it out",
    },
    NotBuilt {
        names: &[
            "kubelet-",
            "proxy-client-",
            "egress-selector-config-file",
            "aggregator-",
            "enable-priority-and-fairness",
            "max-",
            "min-request-timeout",
            "request-timeout",
            "shutdown-",
            "goaway-chance",
            "livez-grace-period",
            "http2-max-streams-per-connection",
            "endpoint-reconciler-type",
            "external-hostname",
            "cors-allowed-origins",
            "strict-transport-security-directives",
            "disable-http2-serving",
            "permit-",
        ],
        instead: "this server has its own limits and ways, which are fixed; leave it out",
    },
    NotBuilt {
        names: &["tls-"],
        instead: "TLS 1.2 and 1.3 are spoken, with the one pair of --tls-cert-file and --tls-private-key-file",
    },
    NotBuilt {
        names: &[
            "event-ttl",
            "allow-metric-labels",
            "allow-metric-labels-manifest",
            "disabled-metrics",
            "show-hidden-metrics-for-version",
            "enable-logs-handler",
            "peer-",
            "coordinated-leadership-",
            "debug-",
        ],
        instead: "it is not built; leave it out",
    },
];

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::envtest::flags::Ended;

    #[test]
    fn a_flag_is_taken_or_named_in_the_message() {
        let told = |arg: &str| match PROGRAM.parse(&[OsString::from(arg)]) {
            Err(Ended::Fault(fault)) => fault.message,
            _ => String::new(),
        };
        for flag in FLAGS {
            assert_eq!(told(&format!("--{}=1", flag.name)), "");
        }
        for arg in
            ["--log-dir=x", "--audit_webhook_config_file=x", "--emulated-version=1.35", "--insecure-port=0"]
        {
            let name = arg.split('=').next().unwrap().replace('_', "-");
            assert!(told(arg).starts_with(&format!("{name} is a flag of kube-apiserver that")), "{arg}");
        }
    }
}
