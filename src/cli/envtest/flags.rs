//! Parses the flags of a program that is replaced: flags that are implemented have a help text, and known flags that are not
//! implemented have advice on what to do instead.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::cli::Exit;
use crate::cli::process::Fault;

/// A flag that is implemented.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// The placeholder for its value in the help; empty for a switch, whose value may be `true` or `false`.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
}

/// Flags whose names are, or begin with, `names`, and what to do without them.
pub(super) struct NotBuilt {
    pub(super) names: &'static [&'static str],
    pub(super) instead: &'static str,
}

/// A program with its flags.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) version: &'static str,
    pub(super) flags: &'static [Flag],
    pub(super) not_built: &'static [NotBuilt],
    /// How flags may be written instead of `--name`.
    pub(super) spelling: Spelling,
}

/// How flags may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As Go's package `flag` accepts them: with one dash or two.
    Go,
    /// As kube-apiserver accepts them: with underscores for dashes.
    Kubernetes,
}

/// The flags that were given, with their values.
pub(super) struct Given(ArgMatches);

impl Program {
    /// Parses the flags among `args`.
    ///
    /// # Errors
    /// How the program ends: because of a wrong flag, or after printing help.
    pub(super) fn parse(&self, args: &[OsString]) -> Result<Given, Ended> {
        let args: Vec<OsString> = args.iter().map(|arg| self.spelled(arg)).collect();
        for arg in &args {
            self.check_built(arg).map_err(Ended::Fault)?;
        }
        let named = std::iter::once(OsString::from(self.name));
        match self.command().try_get_matches_from(named.chain(args)) {
            Ok(matches) => Ok(Given(matches)),
            Err(error) => {
                // Clap selects the stream; if it is closed, the error cannot be reported.
                let _ = error.print();
                Err(Ended::Told(if error.use_stderr() { Exit::Usage } else { Exit::Expected }))
            }
        }
    }

    /// Rewrites `arg` to the form that clap parses.
    fn spelled(&self, arg: &OsStr) -> OsString {
        let Some(text) = arg.to_str() else { return arg.to_owned() };
        match self.spelling {
            Spelling::Go => match text.strip_prefix('-') {
                Some(name) if name.len() > 1 && !name.starts_with('-') => format!("--{name}").into(),
                _ => text.into(),
            },
            Spelling::Kubernetes => match text.strip_prefix("--") {
                Some(rest) => {
                    let (name, value) = rest.split_at(rest.find('=').unwrap_or(rest.len()));
                    format!("--{}{value}", name.replace('_', "-")).into()
                }
                // `-v` is the only short flag.
                None => match text.strip_prefix("-v") {
                    Some(level) if level.starts_with(|first: char| first.is_ascii_digit()) => {
                        format!("--v={level}").into()
                    }
                    Some(value) if value.is_empty() || value.starts_with('=') => format!("--v{value}").into(),
                    _ => text.into(),
                },
            },
        }
    }

    /// # Errors
    /// When the flag is known and not implemented.
    fn check_built(&self, arg: &OsStr) -> Result<(), Fault> {
        let Some(flag) = arg.to_str().and_then(|text| text.strip_prefix("--")) else { return Ok(()) };
        let name = flag.split('=').next().unwrap_or(flag);
        if self.flags.iter().any(|known| known.name == name) {
            return Ok(());
        }
        let is_meant = |known: &&str| name == *known || known.ends_with('-') && name.starts_with(known);
        match self.not_built.iter().find(|refused| refused.names.iter().any(is_meant)) {
            Some(refused) => Err(Fault::usage(format!(
                "--{name} is a flag of {} that this program does not have when it stands in for it: {}",
                self.name, refused.instead
            ))),
            None => Ok(()),
        }
    }

    fn command(&self) -> Command {
        let args = self.flags.iter().map(|flag| {
            let arg = Arg::new(flag.name).long(flag.name).help(flag.help).action(ArgAction::Append);
            if flag.value.is_empty() {
                arg.num_args(0..=1).value_name("BOOL").require_equals(true).default_missing_value("true")
            } else {
                arg.num_args(1).value_name(flag.value).allow_hyphen_values(true)
            }
        });
        Command::new(self.name).about(self.about).version(self.version).args(args)
    }
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "t" | "T" | "TRUE" | "True" | "1" => Some(true),
        "false" | "f" | "F" | "FALSE" | "False" | "0" => Some(false),
        _ => None,
    }
}

/// Why a program does not start.
pub(super) enum Ended {
    /// Everything has been printed.
    Told(Exit),
    Fault(Fault),
}

impl Given {
    /// Returns all values in the order in which they were given.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let values = self.0.get_many::<String>(name);
        values.map(|values| values.map(String::as_str).collect()).unwrap_or_default()
    }

    /// Returns the last value, which counts for flags with a single value.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).pop()
    }

    /// Returns all values; each argument may be a list separated by commas.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.all(name)
            .into_iter()
            .flat_map(|value| value.split(','))
            .filter(|value| !value.is_empty())
            .collect()
    }

    /// # Errors
    /// When the value is neither true nor false.
    pub(super) fn switch(&self, name: &str) -> Result<Option<bool>, Fault> {
        self.parsed(name, "a bool, true or false", truth)
    }

    /// Returns the last value, parsed by `read`.
    ///
    /// # Errors
    /// When it is not what was `wanted`.
    pub(super) fn parsed<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.last(name) else { return Ok(None) };
        read(text).map(Some).ok_or_else(|| Fault::usage(format!("--{name}: `{text}` is not {wanted}")))
    }

    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.last(name).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Checks a flag that may only be set to what is always so.
    ///
    /// # Errors
    /// When it has another value.
    pub(super) fn must_be(&self, name: &str, allowed: &[&str], otherwise: &str) -> Result<(), Fault> {
        match self.all(name).into_iter().find(|value| !allowed.contains(value)) {
            Some(value) => Err(Fault::usage(format!("--{name}={value} is not built: {otherwise}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program {
        name: "program",
        about: "A program",
        version: "v1",
        flags: &[
            Flag { name: "data-dir", value: "DIR", help: "A folder" },
            Flag { name: "allow", value: "", help: "A switch" },
            Flag { name: "v", value: "LEVEL", help: "A number" },
        ],
        not_built: &[NotBuilt { names: &["audit-", "port"], instead: "leave it out" }],
        spelling: Spelling::Go,
    };
    const UNDERSCORES: Program = Program { spelling: Spelling::Kubernetes, ..PROGRAM };

    fn given(program: &Program, args: &[&str]) -> Given {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        program.parse(&args).unwrap_or_else(|_| panic!("{args:?} is taken"))
    }

    #[test]
    fn flags_are_written_as_go_programs_take_them() {
        for args in [
            &["-data-dir", "x", "--allow"][..],
            &["--data-dir=x", "-allow=true"],
            &["-data-dir=y", "-data-dir", "x", "--allow=1"],
        ] {
            let given = given(&PROGRAM, args);
            assert_eq!((given.last("data-dir"), given.switch("allow").unwrap()), (Some("x"), Some(true)));
        }
        let given = given(&UNDERSCORES, &["--data_dir=a_b", "--data-dir", "c,d"]);
        assert_eq!(given.all("data-dir"), ["a_b", "c,d"]);
        assert_eq!(given.list("data-dir"), ["a_b", "c", "d"]);
        assert_eq!(given.switch("allow").unwrap(), None);
        for args in [&["-v", "4"][..], &["-v=4"], &["-v4"], &["--v=4"]] {
            assert_eq!(self::given(&UNDERSCORES, args).last("v"), Some("4"), "{args:?}");
        }
    }

    #[test]
    fn what_is_not_built_stops_with_its_name() {
        for arg in ["--audit-log-path=x", "-port"] {
            let Err(Ended::Fault(fault)) = PROGRAM.parse(&[arg.into()]) else { panic!("{arg} is taken") };
            assert!(fault.message.contains("leave it out"), "{}", fault.message);
            assert_eq!(fault.exit, Exit::Usage);
        }
        assert!(matches!(PROGRAM.parse(&["--unknown".into()]), Err(Ended::Told(Exit::Usage))));
        assert!(given(&PROGRAM, &["--allow=maybe"]).switch("allow").is_err());
    }

    /// controller-runtime looks for flags at the beginning of lines.
    #[test]
    fn help_has_each_flag_at_the_beginning_of_a_line() {
        let help = PROGRAM.command().render_help().to_string();
        let begins = |flag: &str| help.lines().any(|line| line.trim_start().starts_with(flag));
        assert!(begins("--data-dir") && begins("--allow") && !begins("--port"), "{help}");
    }
}
