//! `admit completion`: prints a script that completes commands and flags in a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, Exit, render};

/// Arguments of `admit completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(admit completion bash)
  admit completion zsh > \"${fpath[1]}/_admit\"
  admit completion fish > ~/.config/fish/completions/admit.fish")]
pub(super) struct CompletionArgs {
    /// Shell to print the script for
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionArgs {
    pub(super) fn run(self) -> Exit {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "admit", &mut script);
        render::print(&String::from_utf8_lossy(&script));
        Exit::Expected
    }
}
