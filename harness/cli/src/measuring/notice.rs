//! A notice of how a night ended. In: a command of the user's, and what the verb answers. Out: the command run by a shell, with the
//! text of the answer as its input; what it fails at changes nothing of the answer.

use std::time::Duration;

use collo_launch::Errand;
use collo_text::{Diagnostic, Remark};

use crate::answer::{Answer, Answered};
use crate::exit;

/// A mail or a request takes seconds; a command that hangs must not keep the night from ending.
const LIMIT: Duration = Duration::from_secs(60);
/// The exit code of collo, for the command.
const CODE: &str = "COLLO_EXIT";

/// Send the answer, or the error, of `collo nightly NAME` to a command.
pub fn send(command: &str, name: &str, answered: Answered) -> Answered {
    let (code, body) = match &answered {
        Ok(answer) => (answer.code, answer.plain()),
        Err(failure) => (failure.class().code(), failure.to_string()),
    };
    let text = format!("collo nightly {name}: {}\n\n{}\n", result(code), body.trim_end());
    let Some(failure) = failure(command, code, text) else { return answered };
    let mut answer = match answered {
        Ok(answer) => answer,
        Err(error) => {
            let mut answer = Answer::from(exit::DONE);
            answer.fails(error);
            answer
        }
    };
    answer.after([Remark::Failure(failure.into())]);
    Ok(answer)
}

/// The result of a night by its exit code, for a subject line.
fn result(code: u8) -> &'static str {
    match code {
        exit::DONE => "no regression",
        exit::FAILED => "a regression",
        exit::INCOMPLETE | exit::INTERRUPTED => "incomplete",
        _ => "not measured",
    }
}

/// Run the command; why it failed.
fn failure(command: &str, code: u8, text: String) -> Option<Diagnostic> {
    let sent = Errand::to("sh", LIMIT).args(["-c", command]).env(CODE, Some(code.to_string())).input(text).ask();
    let why = match sent {
        Ok(output) if output.success() => return None,
        Ok(output) => match (output.status.and_then(|status| status.code()), output.err().trim()) {
            (Some(status), "") => format!("it exited with {status}"),
            (Some(status), said) => format!("it exited with {status}: {said}"),
            (None, _) => format!("it did not finish within {} s", LIMIT.as_secs()),
        },
        Err(error) => error.to_string(),
    };
    let hint = "the night is stored and judged all the same; the command gets its text as input";
    Some(Diagnostic::new(format!("no notice was sent by `{command}`")).caused_by(why).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_reads_the_result_and_the_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("notice");
        let mut answer = Answer::from(exit::FAILED);
        answer.lines("slower  small×2 naive");
        let command = format!("{{ echo \"code $COLLO_EXIT\"; cat; }} > '{}'", file.display());
        let answered = send(&command, "x", Ok(answer)).expect("an answer");
        assert_eq!(answered.code, exit::FAILED);
        assert_eq!(
            fs_err::read_to_string(&file).expect("written"),
            "code 1\ncollo nightly x: a regression\n\nslower  small×2 naive\n"
        );
    }

    #[test]
    fn a_command_that_fails_is_named_and_changes_no_exit_code() {
        let wrong = failure("echo no route >&2; exit 7", exit::DONE, String::new()).expect("it failed");
        insta::assert_snapshot!(wrong.to_string(), @"
        error: no notice was sent by `echo no route >&2; exit 7`
          caused by: it exited with 7: no route
        hint: the night is stored and judged all the same; the command gets its text as input
        ");
        let answered = send("exit 7", "x", Ok(Answer::from(exit::DONE))).expect("an answer");
        assert_eq!(answered.code, exit::DONE);
        let refused = send("exit 7", "x", Err(Diagnostic::new("no GPU").of_machine().into())).expect("an answer");
        assert_eq!(refused.code, exit::MACHINE, "what failed before keeps its code");
    }
}
