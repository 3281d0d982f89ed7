//! Parses the command line and runs a subcommand; this is the composition root. One module per subcommand, one table of exit codes.
//!
//! A subcommand is an arguments struct and a function from it to an [`Exit`]. Results go to stdout, diagnostics to
//! stderr; `render` formats them. Only this module knows all parts of the program.

mod admission_configuration;
mod attack;
mod audit_log;
mod bench;
mod certs;
mod check;
mod client;
mod completion;
mod controller_selection;
mod controllers;
mod conversion;
mod cyndi;
mod datagather_flags;
mod demo;
mod envtest;
mod eval;
pub mod exit;
mod explain;
mod following;
mod gather;
mod gather_job_flags;
mod generate;
mod init;
mod kubeconfig;
mod lint;
mod load;
mod localnode_flags;
pub mod lsp;
mod must_gather;
mod mutate;
mod observability_flags;
mod offline_plugins;
mod paths;
mod play;
mod process;
mod progress;
mod prove;
mod register;
mod releases;
mod render;
mod replay;
mod report_condition;
mod report_format;
mod scan;
mod schema;
mod serve;
mod sources;
mod state;
mod states;
mod suite;
mod supervise;
mod token_key;
mod up;
mod value_parsers;
mod version;
mod wait_operators;
mod whole;

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub use self::conversion::converters;
pub use self::exit::Exit;

/// Decides what may enter a Kubernetes cluster, with kube-apiserver's verdicts and words.
#[derive(Debug, Parser)]
#[command(name = "admit", version, propagate_version = true, after_help = exit::HELP)]
pub struct Cli {
    /// When to colour results; auto: on a terminal unless NO_COLOR is set, or always if CLICOLOR_FORCE is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: render::Color,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start an API server, the webhook and the controllers on this machine
    Up(Box<up::UpArgs>),
    /// Run test suites of policies and CRDs, offline
    Test(suite::TestArgs),
    /// Check offline whether manifests would be admitted, as creations or as updates of old objects
    Check(check::CheckArgs),
    /// Write a first test suite, which passes, for CRDs and policies
    Init(init::InitArgs),
    /// Find policies and CRDs, or parts of them, that a server would refuse, that cost too much or that have no effect
    Lint(lint::LintArgs),
    /// Run a language server for CEL in manifests: diagnostics, types, completion and names
    Lsp(lsp::LspArgs),
    /// Show what every expression evaluated to for a test case or manifests
    Explain(Box<explain::ExplainArgs>),
    /// Draw which transitions between the values of a field are allowed
    States(states::StatesArgs),
    /// Prove a claim about rules for all objects, or show an object that refutes it
    Prove(Box<prove::ProveArgs>),
    /// Find changes of rules that no test case detects (mutation testing)
    Mutate(mutate::MutateArgs),
    /// Find bypasses of policies: a denied request, and an admitted one with the same effect
    Attack(Box<attack::AttackArgs>),
    /// Show what policies would have decided about the requests of an audit log
    Replay(replay::ReplayArgs),
    /// Evaluate policies for the stored objects of a cluster, and report by namespace
    Scan(Box<scan::ScanArgs>),
    /// Evaluate one CEL expression
    Eval(eval::EvalArgs),
    /// Serve a browser playground that evaluates expressions, definitions and policies as you type
    Play(play::PlayArgs),
    /// Print a folder with `kube-apiserver` and `etcd` for operators' test suites: KUBEBUILDER_ASSETS=$(admit envtest)
    Envtest(envtest::EnvtestArgs),
    /// Serve the policies as an admission webhook
    Serve(serve::ServeArgs),
    /// Measure how fast an admission endpoint answers
    Bench(bench::BenchArgs),
    /// Run the controllers against a cluster
    Controllers(Box<controllers::ControllersArgs>),
    /// Run the gathering of one DataGather, as its Job does
    Gather(gather::GatherArgs),
    /// Collect the objects of a cluster, and the logs of its Pods
    MustGather(must_gather::collect::CollectArgs),
    /// Run a command that collects data: limit its time, keep its output, and mark its end
    #[command(hide = true)]
    RunGather(must_gather::run::RunArgs),
    /// Copy collected data with confidential values replaced or left out
    Obfuscate(must_gather::obfuscate::ObfuscateArgs),
    /// Upload collected data to a support case, by SFTP
    Upload(Box<must_gather::upload::UploadArgs>),
    /// Report the condition of a metrics collector in the status of an ObservabilityAddon
    ReportCondition(Box<report_condition::ReportConditionArgs>),
    /// Wait until the ClusterOperators of a payload are available, not degraded and at their versions
    WaitOperators(wait_operators::WaitOperatorsArgs),
    /// Inspect a CyndiPipeline without writing: what the next reconciliation would do, whether its table is valid
    Cyndi(Box<cyndi::CyndiCommand>),
    /// Generate manifests from the policies
    Generate(generate::GenerateArgs),
    /// Create the certificates of a webhook that runs in a cluster
    Certs(certs::CertsArgs),
    /// Print a shell completion script
    Completion(completion::CompletionArgs),
    /// Print the JSON Schema of suites, or of what a command writes with `-o json`
    Schema(schema::SchemaArgs),
    /// Print the version
    Version(version::VersionArgs),
    /// Run a container of a Pod; `admit up` starts this
    #[command(hide = true)]
    Supervise(supervise::SuperviseArgs),
}

/// Parses `args` (the program's name first) and runs the subcommand; called as `kube-apiserver` or `etcd`, it accepts their flags.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(exit) = envtest::called_as(&args) {
        return exit;
    }
    let args: Vec<OsString> = args.into_iter().map(long_form).collect();
    let command = named_as_called(Cli::command(), args.first());
    let parsed = command.try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => {
            let exit = cli.run();
            let lost = render::lost().map(|error| {
                process::fail(&process::Fault::usage(format!("cannot write the results: {error}")))
            });
            exit.max(lost.unwrap_or(exit))
        }
        Err(error) => {
            // Help and version arrive here too; clap selects the stream for each. If it is closed, only the exit
            // code reports the result.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Expected }
        }
    }
}

/// Adapts help and examples to the name of the program: kubectl runs `kubectl-admit` on the PATH for `kubectl
/// admit`.
fn named_as_called(command: clap::Command, program: Option<&OsString>) -> clap::Command {
    let name = program.map(Path::new).and_then(Path::file_stem);
    if name.is_none_or(|name| name != "kubectl-admit") {
        return command;
    }
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    command.bin_name("kubectl admit").mut_subcommands(|below| with_examples_of_plugin(below, &names))
}

/// Rewrites the examples of all commands below; `names` are the commands that examples may call.
fn with_examples_of_plugin(command: clap::Command, names: &[String]) -> clap::Command {
    let command = command.mut_subcommands(|below| with_examples_of_plugin(below, names));
    let Some(help) = command.get_after_help().map(ToString::to_string) else { return command };
    command.after_help(names.iter().fold(help, |help, name| called_by_kubectl(&help, name)))
}

/// Inserts `kubectl` before each `admit NAME` as whole words: `admit up` is not a part of `admit upload`.
fn called_by_kubectl(help: &str, name: &str) -> String {
    let call = format!("admit {name}");
    let mut out = String::with_capacity(help.len());
    let mut rest = help;
    while let Some((before, behind)) = rest.split_once(&call) {
        let goes_on = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        out.push_str(before);
        out.push_str(if goes_on { "" } else { "kubectl " });
        out.push_str(&call);
        rest = behind;
    }
    out + rest
}

/// Replaces `-run`, which Go users write, by `--run`.
fn long_form(arg: OsString) -> OsString {
    if arg == "-run" { "--run".into() } else { arg }
}

impl Cli {
    fn run(self) -> Exit {
        render::color(self.color);
        match self.command {
            Command::Up(args) => args.run(),
            Command::Test(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Init(args) => args.run(),
            Command::Lint(args) => args.run(),
            Command::Lsp(args) => args.run(),
            Command::Explain(args) => args.run(),
            Command::States(args) => args.run(),
            Command::Prove(args) => args.run(),
            Command::Mutate(args) => args.run(),
            Command::Attack(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Scan(args) => args.run(),
            Command::Eval(args) => args.run(),
            Command::Play(args) => args.run(),
            Command::Envtest(args) => args.run(),
            Command::Serve(args) => args.run(),
            Command::Bench(args) => args.run(),
            Command::Controllers(args) => args.run(),
            Command::Gather(args) => args.run(),
            Command::MustGather(args) => args.run(),
            Command::RunGather(args) => args.run(),
            Command::Obfuscate(args) => args.run(),
            Command::Upload(args) => args.run(),
            Command::ReportCondition(args) => args.run(),
            Command::WaitOperators(args) => args.run(),
            Command::Cyndi(args) => args.run(),
            Command::Generate(args) => args.run(),
            Command::Certs(args) => args.run(),
            Command::Completion(args) => args.run(),
            Command::Schema(args) => args.run(),
            Command::Version(args) => args.run(),
            Command::Supervise(args) => args.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the calls of this program in an example, each without pipes and redirections.
    fn typed(line: &str) -> Vec<Vec<OsString>> {
        let line = line.split(" # ").next().unwrap();
        let parts = line.split(['|', '>', '(', ')']).flat_map(|part| part.split("&&")).map(str::trim);
        let ours = parts.filter(|part| part.starts_with("admit "));
        // Text between quotes is every second piece.
        let words = |part: &str| {
            part.split('\'')
                .enumerate()
                .flat_map(|(at, piece)| match at % 2 {
                    0 => piece.split_whitespace().map(OsString::from).collect(),
                    _ => vec![OsString::from(piece)],
                })
                .map(long_form)
                .collect()
        };
        ours.map(words).collect()
    }

    fn examples(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = help.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned);
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn examples_of_the_help_can_be_typed() {
        let mut tried = 0;
        for example in examples(&Cli::command()) {
            for words in typed(&example) {
                let parsed = Cli::command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                tried += 1;
            }
        }
        assert!(tried > 40, "{tried} were found");
    }

    #[test]
    fn examples_of_the_plugin_are_those_of_the_program() {
        let plugin = named_as_called(Cli::command(), Some(&"/usr/bin/kubectl-admit".into()));
        for (own, theirs) in examples(&Cli::command()).iter().zip(examples(&plugin)) {
            assert_eq!(&theirs.replace("kubectl admit", "admit"), own);
            assert!(theirs.matches("kubectl admit").count() >= typed(own).len(), "{theirs}");
        }
    }
}
