//! Tests of precedence between layers, and of invalid values.

use super::*;

fn hours(count: u64) -> Option<Duration> {
    Some(Duration::from_hours(count))
}

fn flags() -> Config {
    Config { every: hours(2), upload: Some("https://flag.example/u".to_owned()), ..Config::default() }
}

fn secret(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn later_layers_count_over_earlier_ones() {
    let mut config = flags();
    config.take_secret(&secret(&[
        ("interval", " 4h\n"),
        ("endpoint", "https://secret.example/u"),
        ("enableGlobalObfuscation", "true"),
    ]));
    assert_eq!((config.every, config.obfuscate), (hours(4), true));
    assert_eq!(config.upload.as_deref(), Some("https://secret.example/u"));
    config.take_map(
        "dataReporting:\n  interval: 1h\n  uploadEndpoint: https://map.example/u\n  \
         processingStatusEndpoint: https://map.example/%s/%s/status\n  obfuscation: [networking]\n  \
         conditionalGathererEndpoint: https://map.example/v2/%s/rules\n  disableRuntimeExtractor: true\n",
        "ns",
    );
    assert_eq!(config.every, hours(1));
    assert_eq!(config.upload.as_deref(), Some("https://map.example/u"));
    let status = config.status.unwrap().of("c", "r");
    assert_eq!(status, "https://map.example/c/r/status");
    assert_eq!(config.remote.unwrap().of("4.18"), "https://map.example/v2/4.18/rules");
    assert!(config.no_agents);
    assert_eq!(config.refused, Vec::<String>::new());
}

#[test]
fn what_makes_no_sense_is_named_and_the_layer_below_counts() {
    let mut config = flags();
    config.take_secret(&secret(&[
        ("interval", "9m"),
        ("endpoint", "http://example.com/u"),
        ("httpsProxy", "socks5://u:canary@p"),
    ]));
    config.take_map(
        "dataReporting: {interval: soon, storagePath: /x, obfuscation: [workload_names, all]}",
        "ns",
    );
    assert_eq!((config.every, config.upload.as_deref()), (hours(2), Some("https://flag.example/u")));
    let keys: Vec<_> = config.refused.iter().map(|text| text.split(": ").nth(1).unwrap()).collect();
    let obfuscation = "dataReporting.obfuscation";
    let named = [
        "interval",
        "endpoint",
        "httpsProxy",
        "dataReporting.interval",
        obfuscation,
        obfuscation,
        "dataReporting.storagePath",
    ];
    assert_eq!(keys, named);
    assert!(config.refused[0].ends_with("`9m` is less than 10m"), "{}", config.refused[0]);
    assert!(!config.refused[2].contains("canary"), "{}", config.refused[2]);
    assert!(!config.obfuscate);
}

#[test]
fn what_cannot_be_understood_hides_rather_than_shows() {
    for text in ["a: [", "- x", &"a: b\n".repeat(20_000)] {
        let mut config = flags();
        config.take_map(text, "ns");
        assert!(config.obfuscate && config.refused.len() == 1, "{:?}", config.refused);
    }
    let mut config = flags();
    config.take_secret(&secret(&[("enableGlobalObfuscation", "yes")]));
    assert!(config.obfuscate && config.refused.len() == 1);
}

#[test]
fn what_flags_switch_off_stays_off() {
    let mut config = Config { every: None, ..flags() };
    config.take_secret(&secret(&[("interval", "4h")]));
    assert_eq!(config.every, None);
}

#[test]
fn each_value_of_proxies_comes_from_the_highest_layer_that_has_it() {
    let of = |http: &str, https: &str, none: &str| Proxies {
        http: http.to_owned(),
        https: https.to_owned(),
        none: none.to_owned(),
    };
    let process = of("http://env.test", "http://env.test", "env.test");
    let mut config = flags();
    config.take_proxies(&Proxies::default(), &process);
    assert!(config.proxies == process);

    let mut config = flags();
    config.take_secret(&secret(&[
        ("httpsProxy", "http://u:canary@secret.test:3128\n"),
        ("noProxy", "secret.test"),
    ]));
    config.take_map("proxy: {noProxy: 'map.test', httpsProxy: 'ftp://canary'}", "ns");
    config.take_proxies(&of("https://cluster.test", "https://cluster.test", "cluster.test"), &process);
    assert!(config.proxies == of("https://cluster.test", "http://u:canary@secret.test:3128", "map.test"));
    let expected = "ConfigMap ns/insights-config: proxy.httpsProxy: the proxy is not given as http://host:port or https://host:port";
    assert_eq!(config.refused, [expected]);
    assert!(!format!("{config:?}").contains("canary"), "{config:?}");

    let mut config = flags();
    config.take_map("proxy: {httpProxy: 'p.test'}", "ns");
    config.take_proxies(&of("", "gopher://x", ""), &Proxies::default());
    let keys: Vec<_> =
        config.refused.iter().map(|text| text.split(": ").take(2).collect::<Vec<_>>()).collect();
    assert_eq!(
        keys,
        [
            ["Proxy cluster", "httpsProxy"],
            ["httpProxy", "uploads go to https://, and it leads to http:// alone"]
        ]
    );
}
