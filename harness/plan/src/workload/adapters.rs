//! Presets of the `[epochs]` adapter: patterns for the output of widely used trainers.
//!
//! In: a preset's name. Out: a pattern without `seconds`, so that an epoch begins where the one before ended, and includes
//! everything since. The first epoch includes the script's start, which is one reason why it counts as warm-up. No pattern reads
//! a loss: what these lines print is the loss of one batch, or of the steps since some other line.

/// A pattern for the output of one library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    /// The adapter's [`pattern`](collo_launch::Adapter::pattern).
    pub pattern: &'static str,
    /// The library, in the versions whose output it was tested with.
    pub tested_with: &'static str,
    /// What an epoch is.
    pub about: &'static str,
    /// How the script must be configured.
    pub condition: &'static str,
    /// A text in other lines of its output, where the lines of the pattern might as well be those of another trainer.
    pub beside: Option<&'static str>,
}

/// The groups of a pattern that mean something, each optional: the number of an epoch, or of a step where those are the unit; how long it
/// took, as durations that are added up; its loss.
pub const GROUPS: [&str; 7] = ["epoch", "step", "hours", "minutes", "seconds", "milliseconds", "loss"];

pub const PRESETS: &[Preset] = &[
    // `train_one_epoch` of train.py in huggingface/pytorch-image-models logs the first update of every epoch, counted from 0,
    // whatever `--log-interval`; its last one only by chance, and validation only every `--val-interval` epochs.
    Preset {
        name: "timm",
        pattern: r"^Train: (?P<epoch>[1-9]\d*) \[ *0/",
        tested_with: "the loop of timm's train.py, timm 1.0.31",
        about: "from the first update of an epoch to that of the next: training, validation and checkpoint",
        condition: "that the script trains one epoch more than wanted (`--epochs`)",
        beside: None,
    },
    // A bar is drawn again and again, after the validation too: the first that is full counts. Short of the end its last block
    // is a narrower one, also where 99.6 % are shown as 100 %.
    Preset {
        name: "lightning",
        pattern: r"^Epoch (?P<epoch>\d+): 100%\|(?:█+|#+)\|",
        tested_with: "lightning 2.4.0 and 2.6.6",
        about: "from the last training batch of an epoch to that of the next: the validation and the checkpoint after the \
                former, and the training of the latter, to the batches that the GPU lags behind",
        condition: "the progress bar of tqdm, which the script must select if `rich` is installed (`callbacks=[TQDMProgressBar()]`)",
        beside: None,
    },
    // Version 5 quotes the values and shows four digits, version 4 does not. Evaluations and the summary begin otherwise.
    Preset {
        name: "huggingface",
        pattern: r"^\{'loss': .*'epoch': '?(?P<epoch>\d+)(?:\.0)?'?[,}]",
        tested_with: "transformers 4.57.1 and 5.23.0",
        about: "from the last step of an epoch to that of the next: the evaluation and the checkpoint after the former, and the \
                training of the latter",
        condition: "that the script logs each epoch (`--logging_strategy epoch`); by default it logs every 500 steps",
        beside: None,
    },
    // `ProgbarLogger.on_epoch_begin` of keras/src/callbacks/progbar_logger.py prints it before each epoch, `verbose` 1 or 2; the bar of `Progbar`
    // (keras/src/utils/progbar.py) writes `ms/step`. The line of the first epoch ends none.
    Preset {
        name: "keras",
        pattern: r"^Epoch (?P<epoch>[2-9]|[1-9]\d+)/\d+$",
        tested_with: "keras 3.15.1",
        about: "from the beginning of an epoch to that of the next: training, validation and checkpoint",
        condition: "that the script trains one epoch more than wanted, with `verbose` 1 or 2",
        beside: Some("/step"),
    },
    // `progress_string` of ultralytics/models/yolo/detect/train.py and its bar, ultralytics/utils/tqdm.py: the number, the memory in G,
    // losses, and a bar that is drawn again, the last time in full.
    Preset {
        name: "ultralytics",
        pattern: r"^\s*(?P<epoch>\d+)/\d+\s+\S+G\s.*: 100% ━",
        tested_with: "ultralytics 8.4.190",
        about: "from the last training batch of an epoch to that of the next: the validation and the checkpoint after the \
                former, and the training of the latter",
        condition: "its default output (`verbose=True`)",
        beside: None,
    },
    // The bar over all steps of train_text_to_image.py, train_dreambooth.py, train_controlnet.py … in huggingface/diffusers/examples.
    // `set_postfix` draws it after each step, however short that is. Its first drawing, of step 0, comes before the first step.
    Preset {
        name: "diffusers",
        pattern: r"^Steps:\s+\d+%\|.*?\| (?P<step>[1-9]\d*)/\d+ \[",
        tested_with: "train_text_to_image.py of diffusers, of August 2026 with diffusers 0.42.1",
        about: "from one step of the optimizer to the next, and the checkpoint or the validation between them, if there is one: a step, \
                because these scripts print no epochs",
        condition: "a bar that is called `Steps`: that of train_unconditional.py is read by the preset `lightning`",
        beside: None,
    },
];

impl Preset {
    /// Whether what it measures is an epoch, and not a step.
    pub fn is_of_epochs(&self) -> bool {
        self.pattern.contains("(?P<epoch>")
    }
}

/// The preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
