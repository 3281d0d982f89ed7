//! Lists the flags of kube-apiserver: those that are implemented, and those that are known and not implemented.

use crate::cli::envtest::flags::{Flag, NotBuilt, Program, Spelling};

pub(super) const PROGRAM: Program = Program {
    name: "kube-apiserver",
    about: "admit in place of kube-apiserver, for test harnesses",
    version: "v1.36.2+admit",
    flags: FLAGS,
    not_built: NOT_BUILT,
    spelling: Spelling::Kubernetes,
};

const FLAGS: &[Flag] = &[
    Flag {
        name: "admission-control-config-file",
        value: "FILE",
        help: "File with the configuration of admission plugins: an AdmissionConfiguration",
    },
    Flag {
        name: "advertise-address",
        value: "IP",
        help: "Address of the endpoint of Service default/kubernetes [default: the bind address, or this machine's]",
    },
    Flag {
        name: "allow-privileged",
        value: "",
        help: "Admit privileged containers; otherwise they are refused in pods and pod templates [default: false]",
    },
    Flag {
        name: "anonymous-auth",
        value: "",
        help: "Answer requests without credentials, unless the authorization mode is AlwaysAllow [default: true]",
    },
    Flag {
        name: "api-audiences",
        value: "NAMES",
        help: "Token audiences that this server accepts [default: the issuers]",
    },
    Flag {
        name: "audit-log-format",
        value: "FORMAT",
        help: "Format of the audit log: json for whole events, or legacy for a line of text about each [default: json]",
    },
    Flag {
        name: "audit-log-maxage",
        value: "DAYS",
        help: "Number of days to keep old audit logs, 0 for ever [default: 366]",
    },
    Flag {
        name: "audit-log-maxbackup",
        value: "FILES",
        help: "Number of old audit logs to keep, 0 for all [default: 100]",
    },
    Flag {
        name: "audit-log-maxsize",
        value: "MEGABYTES",
        help: "Size in megabytes at which the audit log is rotated, 0 for never [default: 100]",
    },
    Flag {
        name: "audit-log-path",
        value: "FILE",
        help: "File for the audit log of the requests that the audit policy selects; `-` for standard output",
    },
    Flag { name: "audit-log-version", value: "VERSION", help: "Must be audit.k8s.io/v1" },
    Flag {
        name: "audit-policy-file",
        value: "FILE",
        help: "File with the audit policy: which requests to log, at which levels; without it, none is logged",
    },
    Flag {
        name: "authorization-mode",
        value: "MODES",
        help: "Authorization modes, separated by commas: Node, RBAC or AlwaysAllow [default: AlwaysAllow]",
    },
    Flag { name: "bind-address", value: "IP", help: "Address to listen on [default: 0.0.0.0]" },
    Flag {
        name: "cert-dir",
        value: "DIR",
        help: "Folder with apiserver.crt and apiserver.key, which are generated if missing [default: /var/run/kubernetes]",
    },
    Flag {
        name: "client-ca-file",
        value: "FILE",
        help: "File with CAs for client certificates: the common name is the user, the organizations are the groups",
    },
    Flag {
        name: "controllers",
        value: "NAMES",
        help: "Controllers of kube-controller-manager to run here: namespace, garbage-collector, serviceaccount, \
               root-ca-cert-publisher, resourcequota, validatingadmissionpolicy-status, or `*` [default: none]",
    },
    Flag { name: "disable-admission-plugins", value: "NAMES", help: "Admission plugins to disable" },
    Flag {
        name: "enable-admission-plugins",
        value: "NAMES",
        help: "Admission plugins to enable in addition to those on by default",
    },
    Flag {
        name: "enable-aggregator-routing",
        value: "",
        help: "Must be true or absent: Services are always reached at their endpoints",
    },
    Flag { name: "etcd-servers", value: "URL", help: "URL at which this program answers as etcd" },
    Flag {
        name: "feature-gates",
        value: "GATES",
        help: "NAME=BOOL, separated by commas; only the defaults of Kubernetes 1.36 are accepted",
    },
    Flag { name: "profiling", value: "", help: "Must be false: profiling is not supported" },
    Flag {
        name: "proxy-client-cert-file",
        value: "FILE",
        help: "PEM file with the client certificate that is presented to the servers of APIServices",
    },
    Flag { name: "proxy-client-key-file", value: "FILE", help: "PEM file with its private key" },
    Flag {
        name: "runtime-config",
        value: "VERSIONS",
        help: "GROUP/VERSION=BOOL, separated by commas; only what is the case is accepted, such as api/ga=true and api/beta=false",
    },
    Flag { name: "secure-port", value: "PORT", help: "Port to listen on [default: 6443]" },
    Flag {
        name: "service-account-issuer",
        value: "URL",
        help: "Issuer name of this server in tokens; the first is used for new tokens, all are accepted",
    },
    Flag {
        name: "service-account-key-file",
        value: "FILE",
        help: "PEM file with keys to verify tokens with: RSA or ECDSA, public, private or in certificates",
    },
    Flag {
        name: "service-account-lookup",
        value: "",
        help: "Must be true or absent: tokens always become invalid with their service account",
    },
    Flag {
        name: "service-account-signing-key-file",
        value: "FILE",
        help: "PEM file with the RSA or ECDSA key to sign tokens with [default: a key generated by this process]",
    },
    Flag {
        name: "service-cluster-ip-range",
        value: "CIDR",
        help: "IPv4 network to assign the addresses of Services from [default: 10.0.0.0/24]",
    },
    Flag { name: "service-node-port-range", value: "RANGE", help: "Must be 30000-32767" },
    Flag { name: "storage-backend", value: "NAME", help: "Must be etcd3" },
    Flag { name: "storage-media-type", value: "TYPE", help: "Must be application/json" },
    Flag {
        name: "tls-cert-file",
        value: "FILE",
        help: "PEM file with the serving certificate and its chain",
    },
    Flag {
        name: "tls-private-key-file",
        value: "FILE",
        help: "PEM file with the private key of the serving certificate",
    },
    Flag {
        name: "token-auth-file",
        value: "FILE",
        help: "CSV file of users by bearer token: token, name, uid and \"groups\" on each line",
    },
    Flag {
        name: "v",
        value: "LEVEL",
        help: "Any number is accepted and ignored: RUST_LOG sets the log level",
    },
    Flag {
        name: "vmodule",
        value: "PATTERNS",
        help: "Any value is accepted and ignored: RUST_LOG sets what is logged, such as admit_apiserver=debug",
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
