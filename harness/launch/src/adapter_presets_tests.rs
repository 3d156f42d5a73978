//! The presets of adapters, on what the trainers that they are for were recorded to print.

use crate::adapter::{Adapter, Translator};
use crate::output::OutputLines;
use collo_plan::goal::EpochGoal;
use collo_plan::workload::adapters::{PRESETS, preset};

/// Recorded from pieces of timm 1.0.31 in a loop as train.py's, with its logging statements and `--log-interval 5`.
const TIMM: &str = "\
Train: 0 [   0/10 ( 10%)]  Loss: 2.84 (2.84)  Time: 0.102s,   78.76/s  (0.102s,   78.76/s)  LR: 1.000e-01  Data: 0.096 (0.096)
Train: 0 [   5/10 ( 60%)]  Loss: 1.80 (2.33)  Time: 0.002s, 4330.16/s  (0.020s,  398.62/s)  LR: 1.000e-01  Data: 0.002 (0.019)
Test: [   0/9]  Time: 0.002 (0.002)  Loss:   0.386 ( 0.386)  Acc@1: 100.000 (100.000)  Acc@5: 100.000 (100.000)
Train: 1 [   0/10 ( 10%)]  Loss: 0.752 (0.752)  Time: 0.002s, 3338.42/s  (0.002s, 3338.42/s)  LR: 1.000e-01  Data: 0.002 (0.002)
Train: 1 [   5/10 ( 60%)]  Loss: 0.386 (0.555)  Time: 0.002s, 4422.04/s  (0.002s, 3996.08/s)  LR: 1.000e-01  Data: 0.002 (0.002)
Test: [   9/9]  Time: 0.002 (0.002)  Loss:   0.313 ( 0.241)  Acc@1: 100.000 (100.000)  Acc@5: 100.000 (100.000)
Train: 2 [   0/10 ( 10%)]  Loss: 0.217 (0.217)  Time: 0.002s, 3757.50/s  (0.002s, 3757.50/s)  LR: 1.000e-01  Data: 0.002 (0.002)
*** Best metric: 100.0 (epoch 0)";

/// Recorded from lightning 2.6.6, cut as the supervisor cuts it: at line feeds and at carriage returns.
const LIGHTNING: &str = "\
Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 73.17it/s]
Epoch 0:   0%|          | 0/250 [00:00<?, ?it/s]
Epoch 0: 100%|█████████▉| 249/250 [00:00<00:00, 859.30it/s, loss=0.653]
Epoch 0: 100%|██████████| 250/250 [00:00<00:00, 859.61it/s, loss=0.653]
Epoch 0: 100%|██████████| 250/250 [00:00<00:00, 859.28it/s, loss=0.667]
Validation DataLoader 0: 100%|██████████| 125/125 [00:00<00:00, 1009.27it/s]\x1b[A
Epoch 0: 100%|██████████| 250/250 [00:00<00:00, 600.79it/s, loss=0.667, val_loss=0.707]
Epoch 0:   0%|          | 0/250 [00:00<?, ?it/s, loss=0.667, val_loss=0.707]
Epoch 1: 100%|█████████▉| 249/250 [00:00<00:00, 551.61it/s, loss=0.653, val_loss=0.707]
Epoch 1: 100%|██████████| 250/250 [00:00<00:00, 552.57it/s, loss=0.653, val_loss=0.707]
Epoch 1: 100%|██████████| 250/250 [00:00<00:00, 428.50it/s, loss=0.667, val_loss=0.707]`Trainer.fit` stopped: `max_epochs=2` reached.";

/// The same where the output's encoding has no blocks.
const LIGHTNING_IN_ASCII: &str = "\
Epoch 0:  88%|########7 | 7/8 [00:00<00:00, 361.20it/s, loss=0.901]
Epoch 0: 100%|##########| 8/8 [00:00<00:00, 389.33it/s, loss=0.901]";

/// Recorded from transformers 5.23.0 with `logging_strategy=\"epoch\"` and `eval_strategy=\"epoch\"`.
const HUGGINGFACE_5: &str = "\
{'loss': '0.9054', 'grad_norm': '1.644', 'learning_rate': '2.857e-05', 'epoch': '1'}
 50%|█████     | 7/14 [00:00<00:00, 669.39it/s]
\x1b[A{'eval_loss': '0.7124', 'eval_runtime': '0.0024', 'eval_samples_per_second': '8493', 'eval_steps_per_second': '1274', 'epoch': '1'}
{'loss': '0.9536', 'grad_norm': '3.356', 'learning_rate': '3.571e-06', 'epoch': '2'}
{'train_runtime': '0.0245', 'train_samples_per_second': '4082', 'train_steps_per_second': '571.5', 'train_loss': '0.9295', 'epoch': '2'}";

/// Recorded from transformers 4.57.1 in the same way.
const HUGGINGFACE_4: &str = "\
{'loss': 0.9054, 'grad_norm': 1.6436508893966675, 'learning_rate': 2.857142857142857e-05, 'epoch': 1.0}
\x1b[A{'eval_loss': 0.7124451994895935, 'eval_runtime': 0.0085, 'eval_samples_per_second': 2348.763, 'eval_steps_per_second': 352.314, 'epoch': 1.0}
{'loss': 0.9536, 'grad_norm': 3.3564047813415527, 'learning_rate': 3.5714285714285714e-06, 'epoch': 2.0}
{'train_runtime': 0.0879, 'train_samples_per_second': 1137.164, 'train_steps_per_second': 159.203, 'train_loss': 0.9295155661446708, 'epoch': 2.0}";

/// Recorded from transformers 5.23.0 with `logging_steps=3` where an epoch has two steps.
const EVERY_THIRD_STEP: &str = "\
{'loss': '0.9997', 'grad_norm': '1.219', 'learning_rate': '4.167e-05', 'epoch': '1.5'}
{'loss': '0.9461', 'grad_norm': '0.739', 'learning_rate': '2.917e-05', 'epoch': '3'}
{'loss': '0.9345', 'grad_norm': '1.206', 'learning_rate': '1.667e-05', 'epoch': '4.5'}
{'loss': '1.01', 'grad_norm': '0.8741', 'learning_rate': '4.167e-06', 'epoch': '6'}";

/// The epochs that an adapter of two reports for these lines, one second apart: (index, start, end) of each.
fn told(name: &str, lines: &str) -> Vec<(u64, u64, u64)> {
    let adapter = Adapter {
        pattern: preset(name).unwrap().pattern.into(),
        preset: Some(name.into()),
        items: None,
        goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
        measures_on: false,
    };
    let mut translator = Translator::new(&adapter, 0).unwrap();
    let mut messages = Vec::new();
    let mut output = OutputLines::default();
    for (at_s, line) in lines.lines().enumerate() {
        let at_ns = at_s as u64 * 1_000_000_000;
        output.take(format!("{line}\n").as_bytes(), at_ns, &mut |line, at_ns| messages.extend(translator.line(line, at_ns)));
    }
    let s = |message: &serde_json::Value, key: &str| message[key].as_u64().unwrap() / 1_000_000_000;
    let epochs = messages.iter().filter(|message| message["event"] == "epoch");
    epochs.map(|e| (e["index"].as_u64().unwrap(), s(e, "start_ns"), s(e, "end_ns"))).collect()
}

#[test]
fn an_epoch_of_timm_ends_with_the_first_update_of_the_next() {
    assert_eq!(told("timm", TIMM), [(0, 0, 3), (1, 3, 6)]);
}

#[test]
fn an_epoch_of_lightning_ends_with_the_first_bar_that_is_full() {
    assert_eq!(told("lightning", LIGHTNING), [(0, 0, 3), (1, 3, 9)]);
    assert_eq!(told("lightning", LIGHTNING_IN_ASCII), [(0, 0, 1)]);
}

#[test]
fn an_epoch_of_hugging_face_ends_with_the_line_of_its_loss() {
    assert_eq!(told("huggingface", HUGGINGFACE_5), [(0, 0, 0), (1, 0, 3)]);
    assert_eq!(told("huggingface", HUGGINGFACE_4), [(0, 0, 0), (1, 0, 2)]);
}

/// Recorded from keras 3.15.1 with `verbose=2`; its bar is drawn in the lines between the headings otherwise.
const KERAS: &str = "\
Epoch 1/3
125/125 - 1s - 4ms/step - loss: 2.3181
Epoch 2/3
125/125 - 0s - 4ms/step - loss: 2.2961
Epoch 3/3
125/125 - 0s - 4ms/step - loss: 2.2826";

#[test]
fn an_epoch_of_keras_ends_with_the_heading_of_the_next() {
    assert_eq!(told("keras", KERAS), [(0, 0, 2), (1, 2, 4)]);
}

/// Recorded from ultralytics 8.4.190, cut at carriage returns.
const ULTRALYTICS: &str = "\
val: Scanning labels... 4 images, 0 backgrounds, 0 corrupt: 100% ━━━━━━━━━━━━ 4/4 2.2Kit/s 0.0s
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        1/6         0G       1.38      1.036      0.819          4         64: 0% ──────────── 0/4  0.1s
        1/6         0G     0.6492     0.6452     0.3962          4         64: 100% ━━━━━━━━━━━━ 4/4 14.2it/s 0.3s
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100% ━━━━━━━━━━━━ 1/1 29.6it/s 0.0s
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        2/6         0G       1.06     0.8489     0.6284          4         64: 75% ━━━━━━━━━─── 3/4 6.6it/s 0.2s<0.2s
        2/6         0G       1.06     0.8489     0.6284          4         64: 100% ━━━━━━━━━━━━ 4/4 16.3it/s 0.2s
        2/6         0G       1.06     0.8489     0.6284          4         64: 100% ━━━━━━━━━━━━ 4/4 16.3it/s 0.2s";

#[test]
fn an_epoch_of_ultralytics_ends_with_its_bar_that_is_full() {
    assert_eq!(told("ultralytics", ULTRALYTICS), [(0, 0, 3), (1, 3, 7)]);
}

/// Recorded from train_text_to_image.py of diffusers, of August 2026 with diffusers 0.42.1, cut at carriage returns: a step is drawn
/// when it is counted, if a tenth of a second has gone by since the last drawing, and again with its loss.
const DIFFUSERS: &str = "\
Steps:   0%|          | 0/32 [00:00<?, ?it/s]
Steps:   3%|▎         | 1/32 [00:00<00:07,  3.88it/s]
Steps:   3%|▎         | 1/32 [00:00<00:07,  3.88it/s, lr=0.0001, step_loss=1.13]
Steps:   6%|▋         | 2/32 [00:00<00:06,  4.98it/s, lr=0.0001, step_loss=1.13]
Steps:   9%|▉         | 3/32 [00:00<00:07,  3.79it/s, lr=0.0001, step_loss=1.13]
Steps: 100%|██████████| 32/32 [00:11<00:00,  3.81it/s, lr=0.0001, step_loss=0.768]";

#[test]
fn the_unit_of_diffusers_is_a_step() {
    assert_eq!(told("diffusers", DIFFUSERS), [(0, 0, 1), (1, 1, 3), (2, 3, 4)]);
    let of_steps: Vec<&str> = PRESETS.iter().filter(|preset| !preset.is_of_epochs()).map(|preset| preset.name).collect();
    assert_eq!(of_steps, ["diffusers"]);
}

/// Recorded from train_unconditional.py of diffusers in the same way: a bar for each epoch, without its name in its first drawing.
const DIFFUSERS_UNCONDITIONAL: &str = "\
  0%|          | 0/8 [00:00<?, ?it/s]
Epoch 2:   0%|          | 0/8 [00:00<?, ?it/s]
Epoch 2:  88%|████████▊ | 7/8 [00:31<00:04,  4.55s/it, loss=1.05, lr=4.6e-6, step=23]
Epoch 2: 100%|██████████| 8/8 [00:39<00:00,  5.83s/it, loss=1.05, lr=4.6e-6, step=23]
Epoch 2: 100%|██████████| 8/8 [00:39<00:00,  5.83s/it, loss=1.02, lr=4.8e-6, step=24]
100%|██████████| 2/2 [00:02<00:00,  1.04s/it]
Epoch 3:   0%|          | 0/8 [00:00<?, ?it/s]
Epoch 3: 100%|██████████| 8/8 [01:00<00:00,  6.36s/it, loss=0.953, lr=6.2e-6, step=31]";

#[test]
fn an_epoch_of_unconditional_diffusion_ends_with_its_bar_that_is_full() {
    assert_eq!(told("lightning", DIFFUSERS_UNCONDITIONAL), [(0, 0, 3), (1, 3, 7)]);
}

#[test]
fn three_epochs_are_never_taken_for_one() {
    assert_eq!(told("huggingface", EVERY_THIRD_STEP), [(0, 0, 1)]);
}

#[test]
fn a_preset_says_what_an_epoch_has_in_it() {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(names, ["timm", "lightning", "huggingface", "keras", "ultralytics", "diffusers"]);
    for preset in PRESETS {
        assert!(preset.about.starts_with("from ") && !preset.about.contains("  "), "{}", preset.about);
    }
    assert!(preset("caffe").is_none());
}
