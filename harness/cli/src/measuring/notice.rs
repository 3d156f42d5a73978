//! A notice of how a night ended. In: a command of the user's, and what the verb answers. Out: the command run by a shell, with the
//! text of the answer as its input; what it fails at changes nothing of the answer.

use std::time::Duration;

use collo_launch::{Errand, mark};
use collo_text::{Diagnostic, Diagnostics, Remark};

use super::nightly::JudgedNight;

use crate::answer::{Answer, Answered};
use crate::exit;

/// A mail or a request takes seconds; a command that hangs must not keep the night from ending.
const LIMIT: Duration = Duration::from_secs(60);
/// The exit code of collo, for the command.
const CODE: &str = "COLLO_EXIT";

/// Send the answer, or the error, of `collo nightly NAME` to a command.
pub fn send(command: &str, name: &str, judged: Result<JudgedNight, Diagnostics>) -> Answered {
    let (result, code, body) = match &judged {
        Ok(JudgedNight { result, answer }) => (result.text(), answer.code, answer.plain()),
        Err(failure) => ("failed", failure.class().code(), failure.to_string()),
    };
    let text = format!("collo nightly {name}: {result}\n\n{}\n", body.trim_end());
    let answered = judged.map(|judged| judged.answer);
    let Some(failure) = failure(command, code, text) else { return answered };
    let mut answer = answered.unwrap_or_else(|error| {
        let mut answer = Answer::from(exit::DONE);
        answer.fails(error);
        answer
    });
    answer.after([Remark::Failure(failure.into())]);
    Ok(answer)
}

/// Run the command; why it failed.
fn failure(command: &str, code: u8, text: String) -> Option<Diagnostic> {
    // What it leaves running, as a daemon that sends mail, is not collo's: the next collo would end what has its mark.
    let unmarked = format!("unset {}\n{command}", mark::NAME);
    let sent = Errand::to("sh", LIMIT).args(["-c", &unmarked]).env(CODE, Some(code.to_string())).input(text).ask();
    let why = match sent {
        Ok(output) if output.success() => return None,
        Ok(output) => match (output.status.and_then(|status| status.code()), output.err().trim()) {
            (Some(status), "") => format!("it exited with {status}"),
            (Some(status), said) => format!("it exited with {status}: {said}"),
            (None, _) => format!("it did not finish within {} s", LIMIT.as_secs()),
        },
        Err(error) => error.to_string(),
    };
    let hint = "try it by hand, with any text as its input; what was measured is stored all the same";
    Some(Diagnostic::new(format!("the notice was not sent by `{command}`")).caused_by(why).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measuring::nightly::NightResult;

    fn judged(result: NightResult, code: u8, line: &str) -> Result<JudgedNight, Diagnostics> {
        let mut answer = Answer::from(code);
        answer.lines(line);
        Ok(JudgedNight { result, answer })
    }

    #[test]
    fn the_command_reads_the_result_and_the_code_and_is_not_marked_as_collos() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("notice");
        let command = format!("{{ echo \"code $COLLO_EXIT$COLLO_STARTED_BY\"; cat; }} > '{}'", file.display());
        let sent = |judged| {
            let answered = send(&command, "x", judged);
            (answered, fs_err::read_to_string(&file).expect("written"))
        };
        let (answered, text) = sent(judged(NightResult::Regression, exit::FAILED, "slower  small×2 naive"));
        assert_eq!(answered.expect("an answer").code, exit::FAILED);
        assert_eq!(text, "code 1\ncollo nightly x: regression\n\nslower  small×2 naive\n");
        // It stopped after failed runs, which has the exit code of a regression.
        let (_, text) = sent(judged(NightResult::Incomplete, exit::FAILED, "0 slower"));
        assert!(text.starts_with("code 1\ncollo nightly x: incomplete\n"), "{text}");
        let (answered, text) = sent(Err(Diagnostic::new("no GPU").of_machine().into()));
        assert!(answered.is_err() && text.starts_with("code 3\ncollo nightly x: failed\n\nerror: no GPU"), "{text}");
    }

    #[test]
    fn a_command_that_fails_is_named_and_changes_no_exit_code() {
        let wrong = failure("echo no route >&2; exit 7", exit::DONE, String::new()).expect("it failed");
        insta::assert_snapshot!(wrong.to_string(), @"
        error: the notice was not sent by `echo no route >&2; exit 7`
          caused by: it exited with 7: no route
        hint: try it by hand, with any text as its input; what was measured is stored all the same
        ");
        let answered = send("exit 7", "x", judged(NightResult::NoRegression, exit::DONE, "")).expect("an answer");
        assert_eq!(answered.code, exit::DONE);
        let refused = send("exit 7", "x", Err(Diagnostic::new("no GPU").of_machine().into())).expect("an answer");
        assert_eq!(refused.code, exit::MACHINE, "what failed before keeps its code");
    }
}
