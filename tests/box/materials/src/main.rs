//! The program behind `cargo box`. It needs neither the operator nor the AWS SDK, so it runs a minute after
//! the first call: it says what has to be made, makes programs and images while cargo compiles the box, and
//! becomes the box. `cargo box image` and `cargo box helm` need no box, and are done here.

mod compile;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use box_materials::base::cache::Cache;
use box_materials::base::error_chain::chain;
use box_materials::base::progress::Progress;
use box_materials::helm::Helm;
use box_materials::node_kind::{NodeKind, Wanted};
use box_materials::real::{Piece, about};
use box_materials::release::Release;
use box_materials::requirements;
use clap::{Parser, ValueEnum as _};

type Failure = Box<dyn StdError + Send + Sync>;

/// What is done without the box, which has these commands in its own list, too.
#[derive(Debug, Parser)]
#[command(name = "cargo box", version)]
enum WithoutBox {
    Image(Release),
    Helm(Helm),
}

impl WithoutBox {
    async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Image(release) => release.run().await,
            Self::Helm(helm) => helm.run().await.map(|never| match never {}),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = if std::env::args_os().nth(1).is_some_and(|command| command == "image" || command == "helm") {
        WithoutBox::parse().run().await
    } else {
        run().await.map(|never| match never {})
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Compiles the box, makes what it needs, and becomes it.
async fn run() -> Result<Infallible, Failure> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let program = std::env::current_exe()?.with_file_name("freehold-box");
    match wanted(&arguments) {
        Some(wanted) => prepare(&Cache::from_environment(), wanted, !program.exists()).await?,
        None => compile::on_terminal().await?,
    }
    Err(Command::new(program).args(arguments).exec().into())
}

/// Which machines this command line needs; none if it needs none, or if the box will refuse it.
fn wanted(arguments: &[OsString]) -> Option<Wanted> {
    let arguments: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    if arguments.iter().any(|argument| ["--help", "-h"].contains(argument)) {
        return None;
    }
    match *arguments.first()? {
        "demo" | "up" => {}
        "measure" => return Some(Wanted::Real),
        "cost" => return Some(Wanted::Virtual),
        _ => return None,
    }
    let place = arguments.iter().position(|argument| argument.split('=').next() == Some("--nodes"));
    let Some(place) = place else { return Some(Wanted::default()) };
    let value = arguments[place].split_once('=').map(|(_, value)| value);
    Wanted::from_str(value.or_else(|| arguments.get(place + 1).copied())?, false).ok()
}

/// Compiles the box, and makes the programs and images of its machines at the same time.
async fn prepare(cache: &Cache, wanted: Wanted, is_new: bool) -> Result<(), Failure> {
    let lacks = requirements::missing(cache);
    let nodes = wanted.decide(&lacks)?;
    if nodes == NodeKind::Virtual && wanted == Wanted::Auto {
        eprintln!("virtual machines are used; missing for real ones: {}", lacks.join("; "));
    }
    let missing = nodes.missing(cache).await?;
    let compilation = is_new.then(|| Piece { what: compile::WHAT.to_owned(), seconds: compile::SECONDS });
    let pieces: Vec<&Piece> = compilation.iter().chain(&missing).collect();
    if !pieces.is_empty() {
        let seconds = pieces.iter().map(|piece| piece.seconds).sum();
        eprintln!("made once, {} on two cores, and kept:", about(seconds));
    }
    for piece in pieces {
        eprintln!("  {} ({})", piece.what, about(piece.seconds));
    }
    if missing.is_empty() {
        return compile::on_terminal().await;
    }
    let progress = Progress::on_stderr();
    let compiling = progress.beside();
    let making = async { nodes.prepare(cache, &progress).await.map(drop).map_err(Failure::from) };
    tokio::try_join!(compile::beside(&compiling), making)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_starts_machines_needs_what_they_are_made_of() {
        for (line, expected) in [
            ("demo", Some(Wanted::Auto)),
            ("demo --keep --nodes virtual", Some(Wanted::Virtual)),
            ("up --nodes=real --name ci", Some(Wanted::Real)),
            ("measure --runs 5", Some(Wanted::Real)),
            ("cost --databases 10", Some(Wanted::Virtual)),
            ("up --nodes unreal", None),
            ("demo --nodes", None),
            ("demo --help", None),
            ("down --name demo", None),
            ("image", None),
            ("helm lint charts/freehold", None),
            ("", None),
        ] {
            let arguments: Vec<OsString> = line.split_ascii_whitespace().map(OsString::from).collect();
            assert_eq!(wanted(&arguments), expected, "{line}");
        }
    }
}
