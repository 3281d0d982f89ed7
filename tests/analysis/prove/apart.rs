//! Random rules about texts that are taken apart (addresses, networks, URLs), about parts of times, and about what is found in texts.

use serde_json::Value;

use super::dice::Dice;

const LINKS: &[&str] = &[
    "https://a.example:8443/b?c=d&e",
    "HTTP://u:p@[::1]/x#y",
    "http://a/",
    "https://a?x#%zz",
    "mailto:a@b",
    "/a/b?c=1&c=2&d",
    "//a:b/",
    "*",
    "http://a:b/",
    "x",
];

/// An expression that is true or false.
pub(super) fn apart(dice: &mut Dice) -> String {
    match dice.roll(4) {
        0 => address(dice),
        1 => network(dice),
        2 => link(dice),
        _ => found(dice),
    }
}

fn address(dice: &mut Dice) -> String {
    let addresses = ["ip(self.ip)", "ip(self.peer)", "ip(self.v4)", "ip('10.0.0.1')", "ip('fe80::1')"];
    let (one, other) = (dice.pick(&addresses), dice.pick(&addresses));
    let tests =
        ["isLoopback", "isUnspecified", "isLinkLocalUnicast", "isLinkLocalMulticast", "isGlobalUnicast"];
    match dice.roll(8) {
        6 => format!("string({one}) == {:?}", dice.pick(&["10.0.0.1", "::1", "fe80::1", "0.0.0.0"])),
        7 => format!(
            "string({one}) == {}",
            dice.pick(&["self.ip", "self.peer", "self.v4", "string(ip(self.peer))"])
        ),
        0 => format!("isIP(self.{})", dice.pick(&["ip", "peer", "v4", "text", "net"])),
        1 => format!("{one}.family() == {}", dice.pick(&["4", "6"])),
        2 => format!("{one}.family() != {other}.family()"),
        // Comparing them with `!=` has no bound of costs.
        3 => format!("{}({one} == {other})", dice.pick(&["", "!"])),
        4 => format!("ip.isCanonical(self.{})", dice.pick(&["ip", "peer", "v4"])),
        _ => format!("{one}.{}()", dice.pick(&tests)),
    }
}

fn network(dice: &mut Dice) -> String {
    let networks = [
        "cidr(self.net)",
        "cidr(self.inner)",
        "cidr(self.net).masked()",
        "cidr('10.0.0.0/8')",
        "cidr('fe80::/10')",
        "cidr('::/0')",
    ];
    let (one, other) = (dice.pick(&networks), dice.pick(&networks));
    let op = dice.pick(&["<", "<=", ">", "==", "!="]);
    match dice.roll(6) {
        0 => format!("isCIDR(self.{})", dice.pick(&["net", "inner", "ip"])),
        1 => format!(
            "{one}.prefixLength() {op} {}",
            dice.pick(&["0", "8", "24", "64", "{other}.prefixLength()"])
        )
        .replace("{other}", other),
        2 => format!(
            "{one}.containsIP({})",
            dice.pick(&["self.ip", "ip(self.v4)", "'10.0.0.1'", "{other}.ip()"])
        )
        .replace("{other}", other),
        3 => format!("{one}.containsCIDR({})", dice.pick(&["self.inner", "'10.1.0.0/16'", other])),
        4 => format!("{}({one} == {other})", dice.pick(&["", "!"])),
        _ => format!("{one}.ip().{}", dice.pick(&["family() == 6", "isLoopback()", "isGlobalUnicast()"])),
    }
}

fn link(dice: &mut Dice) -> String {
    let getters = ["getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"];
    let url = dice.pick(&["url(self.link)", "url('https://' + self.ip)", "url('https://a:1/b?c')"]);
    let getter = dice.pick(&getters);
    match dice.roll(7) {
        0 => "isURL(self.link)".to_owned(),
        1 => format!("isURL({:?} + self.ip)", dice.pick(&["https://", "/", "a"])),
        2 => format!("{url}.{getter}() == {:?}", dice.pick(&["https", "a", "", "8443", "/", "::1"])),
        3 => format!("size({url}.{getter}()) {} {}", dice.pick(&["<", ">", "=="]), dice.roll(5)),
        4 => format!("{url}.getQuery() {} {{}}", dice.pick(&["==", "!="])),
        5 => format!("{url}.getQuery().size() == {}", dice.roll(3)),
        _ => format!(
            "{url}.{getter}().{}",
            dice.pick(&["startsWith('a')", "matches('^[a-z]+$')", "contains('/')"])
        ),
    }
}

/// No zone, one of one offset, or one that changes.
fn zone(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "",
        "",
        "'UTC'",
        "'+02:00'",
        "'-05:30'",
        "'14:00'",
        "'a:b'",
        "'Europe/Prague'",
        "'Asia/Tokyo'",
        "'Mars'",
    ])
}

fn found(dice: &mut Dice) -> String {
    let text = dice.pick(&["self.text", "self.link", "self.path", "self.none", "(self.text + self.path)"]);
    let part = dice.pick(&["a", "b", "ab", "/", ""]);
    let op = dice.pick(&["<", "==", "!=", ">="]);
    let time = dice.pick(&["self.since", "self.day", "timestamp(self.stamp)"]);
    let span = dice.pick(&["self.wait", "duration(self.timeout)"]);
    let parts = ["getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfYear", "getDayOfWeek"];
    match dice.roll(9) {
        0 => format!("{text}.trim() {op} {part:?}"),
        1 => format!("{text}.lastIndexOf({part:?}) {op} {}", dice.roll(4)),
        2 => format!("{text}.lastIndexOf({part:?}, {}) {op} {}", dice.roll(5), dice.roll(3)),
        3 => format!("{text}.find({:?}) {op} {part:?}", dice.pick(&["ab", "^a.*$", "a+", "[a-c]b?$", "x*"])),
        4 => format!("size({text}.findAll({:?})) {op} {}", dice.pick(&["a", "ab", "/"]), dice.roll(3)),
        5 => format!(
            "{time}.{}({}) {op} {}",
            dice.pick(&parts),
            zone(dice),
            dice.pick(&["0", "1", "59", "2024"])
        ),
        6 => format!(
            "{time}.{}({}) {op} {}",
            dice.pick(&["getHours", "getMinutes", "getSeconds"]),
            zone(dice),
            dice.roll(60)
        ),
        7 => format!("{time}.getMilliseconds() {op} {}", dice.pick(&["0", "500"])),
        _ => format!(
            "{span}.{}() {op} {}",
            dice.pick(&["getHours", "getMinutes", "getSeconds", "getMilliseconds"]),
            dice.roll(100)
        ),
    }
}

/// The fields that these rules are about.
pub(super) fn fields(dice: &mut Dice, put: &mut impl FnMut(&mut Dice, &str, fn(&mut Dice) -> Value)) {
    fn address(dice: &mut Dice) -> Value {
        let all =
            ["10.0.0.1", "127.0.0.1", "::1", "0:0::1", "FE80::A", "::ffff:1.2.3.4", "0.0.0.0", "ff12::1"];
        let more = [
            "1.2.3.256",
            "::",
            "224.0.0.9",
            "255.255.255.255",
            "x",
            "a b",
            "2001:db8::1%25eth0",
            "64:ff9b::1.2.3.4",
        ];
        if dice.roll(3) == 0 { dice.pick(&more) } else { dice.pick(&all) }.into()
    }
    fn network(dice: &mut Dice) -> Value {
        let all = [
            "10.0.0.0/8",
            "10.1.2.3/16",
            "fe80::1/64",
            "::/0",
            "0.0.0.0/0",
            "8000::/1",
            "::1/128",
            "10.0.0.1/32",
        ];
        let more = ["10.0.0.0/33", "10.0.0.0/08", "10.0.0.0", "::ffff:1.2.3.4/100", "x/8", "FE80::/9"];
        if dice.roll(4) == 0 { dice.pick(&more) } else { dice.pick(&all) }.into()
    }
    put(dice, "ip", address);
    put(dice, "peer", address);
    put(dice, "v4", |dice| dice.pick(&["10.0.0.1", "127.0.0.9", "169.254.1.1", "0.0.0.0"]).into());
    put(dice, "net", network);
    put(dice, "inner", network);
    put(dice, "link", |dice| dice.pick(LINKS).into());
    put(dice, "path", |dice| dice.pick(&["", "a/b/ab", " ab ", "\u{a0}a\n", "abab", "\t"]).into());
}
