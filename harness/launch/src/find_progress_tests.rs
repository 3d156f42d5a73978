//! What is found in output as real trainers print it.

use super::*;

/// Lines at these seconds after the launch.
fn output(lines: &[(f64, &str)]) -> Vec<OutputLine> {
    lines.iter().map(|(at_s, text)| OutputLine { at_ns: (at_s * 1e9) as u64, text: text.to_string() }).collect()
}

/// The best pattern, and the durations that it reads, hundredths of a second.
fn best(lines: &[OutputLine]) -> Option<(String, Vec<u64>)> {
    let found = find_progress(lines, 0);
    found.first().map(|f| (f.pattern.clone(), f.epochs_s.iter().map(|s| (s * 100.0).round() as u64).collect()))
}

#[test]
fn epochs_are_found_by_their_word_and_their_number() {
    let found = best(&output(&[
        (1.0, "loading 3 files"),
        (2.0, "Epoch 1/10, loss 0.53"),
        (3.5, "Epoch 2/10, loss 0.41"),
        (5.0, "Epoch 3/10, loss 0.33"),
    ]));
    assert_eq!(found, Some((r"^Epoch (?P<epoch>\d+)\b".into(), vec![150, 150])));
}

#[test]
fn a_duration_of_the_line_is_read_if_it_is_about_the_time_between_lines() {
    let timed = best(&output(&[(1.0, "epoch 0 took 0.412 s"), (1.5, "epoch 1 took 0.482 s"), (2.0, "epoch 2 took 0.487 s")]));
    assert_eq!(timed, Some((r"^epoch (?P<epoch>\d+)\b.*?took (?P<seconds>[\d.]+) s".into(), vec![48, 49])));
    // It prints the time of the last of ten steps.
    let of_one = best(&output(&[
        (0.3, "iter 0: loss 2.51, time 30.10ms"),
        (0.6, "iter 10: loss 2.50, time 30.02ms"),
        (0.9, "iter 20: loss 2.49, time 30.31ms"),
    ]));
    assert_eq!(of_one, Some((r"^iter (?P<step>\d+)\b".into(), vec![30, 30])));
    // It prints the time since the start.
    let since = best(&output(&[
        (1.0, "step 1 time 1.0s"),
        (2.0, "step 2 time 2.0s"),
        (3.0, "step 3 time 3.0s"),
        (4.0, "step 4 time 4.0s"),
    ]));
    assert_eq!(since, Some((r"^step (?P<epoch>\d+)\b".into(), vec![100, 100, 100])));
}

/// Full-width punctuation, frames, bytes that are no UTF-8: what stands directly before a word may have several bytes.
#[test]
fn lines_of_any_alphabet_are_searched() {
    let of = |line: &dyn Fn(u64) -> String| {
        let lines = (1..5).map(|n| OutputLine { at_ns: n * 1_000_000_000, text: line(n) });
        best(&lines.collect::<Vec<_>>()).map(|found| found.1)
    };
    assert_eq!(of(&|n| format!("Epoch {n}，loss：0.5，time：1.00s")), Some(vec![100; 3]));
    assert_eq!(of(&|n| format!("第{n}轮，损失：0.5，用时：1.00秒")), Some(vec![100; 3]));
    assert_eq!(of(&|n| format!("│epoch {n}│loss 0.5│")), Some(vec![100; 3]));
    assert_eq!(of(&|n| format!("\u{fffd}poque {n} termin\u{fffd}e")), Some(vec![100; 3]));
    assert_eq!(of(&|n| format!("Epoch\u{a0}{n}\u{a0}: perte\u{a0}0,5")), Some(vec![100; 3]));
}

#[test]
fn epochs_come_before_steps() {
    let found = best(&output(&[
        (0.1, "Epoch: [0]  [  0/100]  eta: 0:00:10  loss: 2.5  time: 0.0155"),
        (0.5, "Epoch: [0]  [ 50/100]  eta: 0:00:05  loss: 2.4  time: 0.0085"),
        (1.0, "Epoch: [0] Total time: 0:00:01"),
        (1.1, "Epoch: [1]  [  0/100]  eta: 0:00:10  loss: 2.3  time: 0.0155"),
        (1.5, "Epoch: [1]  [ 50/100]  eta: 0:00:05  loss: 2.2  time: 0.0085"),
        (2.0, "Epoch: [1] Total time: 0:00:01"),
        (2.1, "Epoch: [2]  [  0/100]  eta: 0:00:10  loss: 2.1  time: 0.0155"),
    ]));
    let (pattern, epochs) = found.expect("epochs");
    // Its first line ends nothing: the epoch that it begins is the warm-up.
    assert_eq!((&*pattern, epochs), (r"^Epoch: \[(?P<epoch>0*[1-9]\d*)\b", vec![100]));
}

#[test]
fn epochs_are_found_in_other_words_and_directly_before_a_letter() {
    let of = |line: &dyn Fn(u64) -> String| {
        let lines: Vec<OutputLine> = (1..5).map(|n| OutputLine { at_ns: n * 1_000_000_000, text: line(n) }).collect();
        find_progress(&lines, 0).into_iter().next().map(|found| (found.pattern, found.names_epochs, found.epochs_s.len()))
    };
    let pattern = |text: &str, names_epochs: bool| Some((text.to_string(), names_epochs, 3));
    assert_eq!(of(&|n| format!("epoch_{n:04}: loss 0.5")), pattern(r"^epoch_(?P<epoch>\d+)\b", true));
    assert_eq!(of(&|n| format!("Epoche {n} von 60, Verlust 0,5")), pattern(r"^Epoche (?P<epoch>\d+)\b", true));
    assert_eq!(of(&|n| format!("Époque {n} : perte 0,5")), pattern(r"^Époque (?P<epoch>\d+)\b", true));
    assert_eq!(of(&|n| format!("Epoch(val) [{n}][5/5]  top1: 50.1")), pattern(r"^Epoch\(val\) \[(?P<epoch>\d+)\b", true));
    assert_eq!(of(&|n| format!("INFO: {n}epoch results: loss=5.{n}")), pattern(r"^INFO: (?P<epoch>\d+)e", false));
    assert_eq!(of(&|n| format!("第{n}轮 损失 0.5")), pattern(r"^第(?P<epoch>\d+)轮", false));
    assert_eq!(of(&|n| format!("Episode {n} reward 3")), pattern(r"^Episode (?P<epoch>\d+)\b", false));
}

/// `if epoch == 1 or epoch % 5 == 0`.
#[test]
fn the_first_of_numbers_may_be_at_another_distance() {
    let lines: Vec<(f64, String)> =
        [1, 5, 10, 15, 20].map(|n| (1.0 + 0.1 * f64::from(n), format!("Epoch [{n}/300], Loss: 0.5"))).into();
    let found = best(&output(&lines.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()));
    assert_eq!(found, Some((r"^Epoch \[(?P<epoch>\d+)\b".into(), vec![50; 3])));
}

/// The first epoch takes longer: it has what is done once in it.
#[test]
fn a_heading_ends_the_epoch_before_it_and_the_first_one_ends_none() {
    // The PyTorch tutorial on transfer learning, and Keras, whose bar is drawn meanwhile.
    let tutorial = best(&output(&[
        (5.0, "Epoch 0/24"),
        (5.1, "----------"),
        (9.0, "Epoch 1/24"),
        (10.0, "Epoch 2/24"),
        (11.0, "Epoch 3/24"),
    ]));
    assert_eq!(tutorial, Some((r"^Epoch (?P<epoch>0*[1-9]\d*)\b".into(), vec![100, 100])));
    let bar = |epoch: u32, at_s: f64| (at_s, format!("125/125 ━━━━━━━━━━━━━━━━━━━━ 0s 4ms/step - loss: 1.{epoch}"));
    let mut keras = vec![
        (5.0, "Epoch 1/12".to_string()),
        (9.0, "Epoch 2/12".into()),
        (10.0, "Epoch 3/12".into()),
        (11.0, "Epoch 4/12".into()),
    ];
    assert_eq!(
        best(&output(&keras.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>())),
        Some((r"^Epoch (?P<epoch>0*(?:[2-9]|[1-9]\d+))\b".into(), vec![100, 100]))
    );
    keras.extend([bar(1, 8.9), bar(2, 9.9), bar(3, 10.9)]);
    keras.sort_by(|a, b| a.0.total_cmp(&b.0));
    let found = find_progress(&output(&keras.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()), 0);
    assert_eq!(found.first().and_then(|found| found.preset), Some("keras"));
    // Resumed training, and a line with a result, which comes at the end.
    let resumed = best(&output(&[(5.0, "Epoch 7/12"), (6.0, "Epoch 8/12"), (7.0, "Epoch 9/12")]));
    assert_eq!(resumed, Some((r"^Epoch (?P<epoch>\d+)\b".into(), vec![100, 100])));
}

/// As ultralytics 8.4.190 prints it without its bars: one line before training and one behind the validation, without a number that counts.
#[test]
fn of_two_lines_in_each_epoch_the_one_at_its_end_is_taken() {
    let epoch = |at_s: f64, took_s: f64| [(at_s, "Epoch GPU_mem box_loss"), (at_s + took_s, "Class Images Instances Box")];
    let lines = [epoch(5.0, 3.9), epoch(9.0, 0.9), epoch(10.0, 0.9), epoch(11.0, 0.9)].concat();
    assert_eq!(best(&output(&lines)), Some(("^Class Images Instances Box$".into(), vec![100, 100, 100])));
}

/// As the libraries of Hugging Face print where a file is looked up again and again, before a minute of loading in silence.
#[test]
fn lines_of_the_set_up_do_not_go_on_while_nothing_is_printed() {
    let lines = [0.4, 0.8, 1.2, 1.6, 2.0].map(|at_s| (at_s, "[transformers] Offline mode: forcing local_files_only=True"));
    let all = find_progress(&output(&lines), 0);
    let found = all.first().expect("they recur, and nothing else is known yet");
    assert!(found.may_go_on_at(2.5, 1.0) && found.may_go_on_at(5.9, 1.0));
    assert!(!found.may_go_on_at(10.8, 1.0));
    assert!(found.may_go_on_at(10.8, 10.0));
}

/// Each line of an epoch is logged twice, at its end.
#[test]
fn lines_that_come_twice_at_the_end_of_an_epoch_end_it() {
    let lines =
        [(5.0, 1), (5.01, 1), (6.0, 2), (6.01, 2), (7.0, 3), (7.01, 3)].map(|(at_s, n)| (at_s, format!("epoch {n}: loss 0.3")));
    let found = best(&output(&lines.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()));
    assert_eq!(found, Some((r"^epoch (?P<epoch>\d+)\b".into(), vec![100, 100])));
}

#[test]
fn a_line_without_a_number_that_recurs_is_an_epoch() {
    let found = best(&output(&[
        (0.5, "starting"),
        (1.0, "validation finished"),
        (2.0, "validation finished"),
        (3.0, "validation finished"),
    ]));
    assert_eq!(found, Some(("^validation finished$".into(), vec![100, 100])));
    let values = best(&output(&[(1.0, "Test set: loss 0.31"), (2.0, "Test set: loss 0.12"), (3.0, "Test set: loss 0.25")]));
    assert_eq!(values, Some((r"^Test set: loss ".into(), vec![100, 100])));
}

/// Recorded from LightningCLI of lightning 2.6.6 with rich 15.0.0.
#[test]
fn a_preset_is_found_by_name() {
    let bar = |epoch: u32| format!("Epoch {epoch}: 100%|██████████| 250/250 [00:00<00:00, 859.61it/s, loss=0.653]");
    let lines = output(&[(1.0, &bar(0)), (2.0, &bar(1)), (3.0, &bar(2))]);
    assert_eq!(find_progress(&lines, 0).first().and_then(|found| found.preset), Some("lightning"));
}

/// As train_text_to_image.py of diffusers 0.42.1 draws it: each step twice.
#[test]
fn the_preset_of_a_bar_over_steps_is_found_by_name() {
    let lines: Vec<(f64, String)> = (0..8u32)
        .flat_map(|n| {
            let bar = move |rest: &str| format!("Steps: {:3}%|▎         | {n}/32 [00:00<00:10,  2.86it/s{rest}]", 100 * n / 32);
            let at_s = 20.0 + 0.4 * f64::from(n);
            [(at_s, bar("")), (at_s + 0.001, bar(", lr=0.0001, step_loss=0.768"))]
        })
        .collect();
    let all = find_progress(&output(&lines.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()), 0);
    let best = all.first().expect("steps");
    assert_eq!((best.preset, best.names_epochs, best.epochs_s.len()), (Some("diffusers"), false, 6));
    assert_eq!(best.toml(), "preset = \"diffusers\"");
}

/// As tqdm 4.70.1 draws it, cut at carriage returns: every tenth of a second, and twice at its end.
#[test]
fn of_a_bar_that_starts_again_its_starts_count() {
    let draws = |desc: &str, epoch: f64| {
        let at = |s: f64, text: &str| (epoch + s, format!("{desc}{text}"));
        vec![
            at(0.0, ":   0%|          | 0/100 [00:00<?, ?it/s]"),
            at(0.1, ":  25%|██▌       | 25/100 [00:00<00:00, 249.00it/s]"),
            at(0.2, ":  50%|█████     | 50/100 [00:00<00:00, 231.28it/s]"),
            at(0.3, ":  75%|███████▌  | 75/100 [00:00<00:00, 241.78it/s]"),
            at(0.4, ": 100%|██████████| 100/100 [00:00<00:00, 241.78it/s]"),
            at(0.4001, ": 100%|██████████| 100/100 [00:00<00:00, 239.84it/s]"),
        ]
    };
    let output_of = |desc: &dyn Fn(u32) -> String| {
        let all: Vec<(f64, String)> = (0..4).flat_map(|epoch| draws(&desc(epoch), 1.0 + 0.5 * f64::from(epoch))).collect();
        best(&output(&all.iter().map(|(at, text)| (*at, &**text)).collect::<Vec<_>>()))
    };
    assert_eq!(output_of(&|_| "train".into()), Some((r"^train:\s*0%\|.*?\| 0/100 \[".into(), vec![50, 50, 50])));
    assert_eq!(output_of(&|epoch| format!("E{epoch}")), Some((r"^E[\d.:,]+:\s*0%\|.*?\| 0/100 \[".into(), vec![50, 50, 50])));
}

/// As tqdm 4.70.1 draws it around a loop over epochs.
#[test]
fn bars_of_training_are_found_beside_those_of_validation_and_of_preparation() {
    // What the `datasets` library draws first; then training and validation, each in a bar of its own.
    let draw = |at_s: f64, bar: &str, n: u32, total: u32| {
        (at_s, format!("{bar}: {:3}%|     | {n}/{total} [00:00<00:00,  2.0it/s]", 100 * n / total))
    };
    let mut drawn = vec![draw(0.1, "Map", 0, 1000), draw(0.2, "Map", 1000, 1000)];
    for epoch in 0..4 {
        let at_s = 1.0 + f64::from(epoch);
        drawn.extend((0..=4).map(|n| draw(at_s + 0.2 * f64::from(n), &format!("train {epoch}"), n, 4)));
        drawn.extend((0..=1).map(|n| draw(at_s + 0.85 + 0.1 * f64::from(n), "val", n, 1)));
    }
    let lines: Vec<(f64, &str)> = drawn.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
    let (pattern, epochs) = best(&output(&lines)).expect("a bar");
    assert_eq!((pattern.contains("val") || pattern.contains("train"), epochs), (true, vec![100; 3]), "{pattern}");
}

/// As tqdm 4.70.1 draws a bar whose postfix or description is set before its first step is counted.
#[test]
fn a_bar_that_is_drawn_again_at_its_start_starts_once() {
    let read = |draw: &dyn Fn(u32, u32) -> Vec<String>| {
        let drawn: Vec<(f64, String)> = (0..4u32)
            .flat_map(|epoch| (0..=10u32).map(move |n| (epoch, n)))
            .flat_map(|(epoch, n)| {
                let lines = draw(epoch, n).into_iter().enumerate();
                lines.map(move |(at, line)| (1.0 + 0.6 * f64::from(epoch) + 0.06 * (f64::from(n) + at as f64), line))
            })
            .collect();
        let (pattern, epochs) = best(&output(&drawn.iter().map(|(at, line)| (*at, &**line)).collect::<Vec<_>>())).expect("a bar");
        assert_eq!(epochs, [60; 3], "{pattern}");
    };
    let bar = |n: u32, rate: &str| format!("{:3}%|     | {n}/10 [00:00<{}, {rate}", 10 * n, if n == 0 { "?" } else { "00:00" });
    // `set_postfix` in the loop over it.
    read(&|epoch, n| match n {
        0 => vec![format!("Epoch {epoch}: {}", bar(0, "?it/s]")), format!("Epoch {epoch}: {}", bar(0, "?it/s, loss=0.5]"))],
        n => vec![format!("Epoch {epoch}: {}", bar(n, "17.0it/s, loss=0.4]"))],
    });
    read(&|_, n| match n {
        0 => vec![format!("train: {}", bar(0, "?it/s]")), format!("train: {}", bar(0, "?it/s, loss=0.5]"))],
        n => vec![format!("train: {}", bar(n, "17.0it/s, loss=0.4]"))],
    });
    // `set_description` in it.
    read(&|epoch, n| match n {
        0 => vec![format!("Epoch {epoch}: {}", bar(0, "?it/s]")), format!("Epoch {epoch} loss 0.5: {}", bar(0, "?it/s]"))],
        n => vec![format!("Epoch {epoch} loss 0.4: {}", bar(n, "17.0it/s]"))],
    });
}

#[test]
fn bars_of_as_many_steps_that_differ_in_a_later_word_are_two() {
    let drawn: Vec<(f64, String)> = (0..4u32)
        .flat_map(|epoch| {
            let draw = move |name: &'static str, at_s: f64, step_s: f64| {
                (0..=10u32).map(move |n| {
                    let line = format!("Epoch {epoch} [{name}]: {:3}%|     | {n}/10 [00:00<00:00, 9.9it/s]", 10 * n);
                    (f64::from(epoch) + at_s + step_s * f64::from(n), line)
                })
            };
            draw("train", 1.0, 0.07).chain(draw("val", 1.75, 0.02))
        })
        .collect();
    let lines: Vec<(f64, &str)> = drawn.iter().map(|(at, line)| (*at, line.as_str())).collect();
    let (pattern, epochs) = best(&output(&lines)).expect("a bar");
    assert_eq!(epochs, [100; 3], "{pattern}");
}

/// Both on stderr, as in `run_glue_no_trainer.py` of transformers: a bar over all steps, drawn by tqdm 4.70.1, has no end of line.
#[test]
fn lines_that_are_logged_behind_a_bar_are_found() {
    let lines: Vec<(f64, String)> = (0..50u32)
        .flat_map(|n| {
            let bar = format!("{:3}%|     | {}/200 [00:01<00:05, 32.20it/s]", 2 * n, 4 * n);
            let epoch = format!("11/29/2026 03:55:{n:02} - INFO - __main__ - epoch {}: perplexity: 20.5", n / 10);
            [(f64::from(n) / 10.0, if n % 10 == 9 { bar + &epoch } else { bar })]
        })
        .collect();
    let found = best(&output(&lines.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()));
    let (pattern, epochs) = found.expect("epochs");
    assert_eq!((pattern.ends_with(r"\- epoch (?P<epoch>\d+)\b"), epochs), (true, vec![100; 4]), "{pattern}");
}

/// As `run_clm_no_trainer.py` prints it with accelerate 1.15.0, whose logger names the rank: a number before that of the epoch.
#[test]
fn the_rank_in_a_line_that_is_logged_behind_a_bar_is_no_epoch() {
    let lines: Vec<(f64, String)> = (0..50u32)
        .flat_map(|n| {
            let bar = format!("{:3}%|     | {}/200 [00:01<00:05, 32.20it/s]", 2 * n, 4 * n);
            let epoch = format!(
                "11/29/2026 04:51:{n:02} - INFO - __main__ - [RANK 0] epoch {}: perplexity: 15.6{n:02} eval_loss: 2.749",
                n / 10
            );
            [(f64::from(n) / 10.0, if n % 10 == 9 { bar + &epoch } else { bar })]
        })
        .collect();
    let found = best(&output(&lines.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()));
    let (pattern, epochs) = found.expect("epochs");
    assert_eq!((pattern.ends_with(r"\[RANK [\d.:,]+\] epoch (?P<epoch>\d+)\b"), epochs), (true, vec![100; 4]), "{pattern}");
}

#[test]
fn of_a_bar_over_epochs_each_step_counts() {
    let lines = output(&[
        (0.0, "training:   0%|          | 0/4 [00:00<?, ?it/s]"),
        (0.4, "training:  25%|██▌       | 1/4 [00:00<00:01,  2.38it/s]"),
        (0.8, "training:  50%|█████     | 2/4 [00:00<00:00,  2.38it/s]"),
        (1.2, "training:  75%|███████▌  | 3/4 [00:01<00:00,  2.38it/s]"),
    ]);
    let (pattern, epochs) = best(&lines).expect("each step is drawn");
    assert_eq!(epochs, [40, 40], "{pattern}");
}

/// Below half a percent tqdm writes `0%`, ten times a second.
#[test]
fn drawings_of_a_long_bar_are_no_epochs() {
    let draw = |n: u32| format!("train:   0%|          | {n}/10000 [00:00<03:20, 49.9it/s]");
    let lines: Vec<OutputLine> = (0..9).map(|n| OutputLine { at_ns: u64::from(n) * 100_000_000, text: draw(5 * n) }).collect();
    assert_eq!(best(&lines), None);
}

/// As tqdm 4.70.1 draws a bar over all steps of a training, each of which takes less than a tenth of a second.
#[test]
fn of_a_long_bar_each_percent_counts_if_it_takes_long_enough() {
    let of = |step_s: f64| {
        let per_draw = (0.1 / step_s).ceil() as u32;
        let draw =
            |n: u32| (step_s * f64::from(n), format!("Steps: {:3}%|     | {n}/2000 [00:01<00:30, 33.1it/s, loss=0.1]", n / 20));
        let drawn: Vec<(f64, String)> = (0..60).map(|draws| draw(draws * per_draw)).collect();
        best(&output(&drawn.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()))
    };
    let (pattern, epochs) = of(0.05).expect("a percent takes a second");
    assert!(
        pattern.contains("(?P<epoch>") && epochs.len() >= 4 && epochs.iter().all(|hundredths| *hundredths == 100),
        "{epochs:?}"
    );
    assert_eq!(of(0.01), None, "a percent takes a fifth of one");
}

#[test]
fn steps_that_name_their_epoch_are_a_part_of_it_until_epochs_are_seen() {
    let step =
        |epoch: u32, batch: u32| (0.1 * f64::from(10 * epoch + batch), format!("[Epoch {epoch}/50] [Batch {batch}/10] loss 0.5"));
    let found = |epochs: u32| {
        let steps: Vec<(f64, String)> = (0..epochs).flat_map(|epoch| (0..10).map(move |batch| step(epoch, batch))).collect();
        let lines: Vec<(f64, &str)> = steps.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
        find_progress(&output(&lines), 0).remove(0)
    };
    let (steps, epochs) = (found(1), found(4));
    assert!(!steps.names_epochs && steps.is_within_epochs(), "{steps:?}");
    assert!(epochs.names_epochs && !epochs.is_within_epochs(), "{epochs:?}");
}

#[test]
fn what_counts_seconds_is_no_step_and_what_ended_with_the_set_up_is_no_progress() {
    let lines = output(&[(10.0, "elapsed 10 s"), (20.0, "elapsed 20 s"), (30.0, "elapsed 30 s"), (40.0, "still 40 s to go")]);
    assert_eq!(best(&lines), None);
    let loading = output(&[
        (0.1, "loading shard 1/3"),
        (0.2, "loading shard 2/3"),
        (0.3, "loading shard 3/3"),
        (5.0, "model has 3 layers"),
    ]);
    assert_eq!(best(&loading), None);
}

#[test]
fn steps_behind_a_number_that_may_be_an_epoch_are_counted_by_their_lines() {
    // The tutorial of PyTorch on CIFAR-10: within its first epoch nothing shows that the second number begins again.
    let steps: Vec<(f64, String)> = (1..6).map(|n| (f64::from(n), format!("[1, {:5}] loss: 2.1", 2000 * n))).collect();
    let lines: Vec<(f64, &str)> = steps.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
    assert_eq!(best(&output(&lines)), Some((r"^\[[\d.:,]+,\s*\d+\b".into(), vec![100; 4])));
    // The time of logging is none.
    let logged: Vec<(f64, String)> =
        (1..6).map(|n| (f64::from(n), format!("2026-11-27 15:40:{n:02} step {}", 100 * n))).collect();
    let lines: Vec<(f64, &str)> = logged.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
    assert!(best(&output(&lines)).is_some_and(|(pattern, _)| pattern.contains("(?P<step>")));
}

#[test]
fn a_clock_behind_the_time_of_logging_is_no_progress() {
    let alive: Vec<(f64, String)> =
        (1..6).map(|n| (f64::from(n), format!("2026-11-27 15:40:{n:02} INFO alive, elapsed {}.5 s", n))).collect();
    let lines: Vec<(f64, &str)> = alive.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
    assert_eq!(best(&output(&lines)), None);
}

#[test]
fn a_clock_among_the_numbers_is_not_what_counts() {
    // stable-baselines3, whose numbers of seconds are whole.
    let table = |n: u32| [format!("|    iterations      | {n}        |"), format!("|    time_elapsed    | {}        |", n / 2)];
    let tables: Vec<(f64, String)> = (1..8).flat_map(|n| table(n).map(|line| (0.5 * f64::from(n), line))).collect();
    let lines: Vec<(f64, &str)> = tables.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
    assert_eq!(best(&output(&lines)), Some((r"^\|    iterations      \| (?P<epoch>\d+)\b".into(), vec![50; 6])));
    // Seconds since 1970, beside epochs that happen to take one.
    let dated: Vec<(f64, String)> = (1..6).map(|n| (f64::from(n), format!("t={} loss 0.{n}", 1_764_000_000 + n))).collect();
    let lines: Vec<(f64, &str)> = dated.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect();
    assert_eq!(best(&output(&lines)), Some((r"^t=".into(), vec![100; 4])));
}

#[test]
fn lines_of_a_log_differ_by_what_follows_their_time() {
    // `logging`, one second an epoch, with other lines in between; the time of each line is the one that it has.
    let log = |prefix: &dyn Fn(u32) -> String, kinds: &[&str]| {
        let line = |n: u32, kind: &str| (f64::from(n), format!("{}{}", prefix(n), kind.replace('N', &n.to_string())));
        let all: Vec<(f64, String)> = (1..6).flat_map(|n| kinds.iter().map(move |kind| line(n, kind))).collect();
        best(&output(&all.iter().map(|(at_s, text)| (*at_s, text.as_str())).collect::<Vec<_>>()))
    };
    let prefixes: [&dyn Fn(u32) -> String; 11] = [
        &|n| format!("2026-11-27 15:40:{n:02},842 - INFO - "),
        &|n| format!("[11/27 15:40:{n:02} trainer]: "),
        &|n| format!("Nov 27 15:40:{n:02} host python[9]: "),
        &|n| format!("I1127 15:40:{n:02}.123456 12345 solver.cpp:239] "),
        &|n| format!("2026-11-27T15:40:{n:02}.5+01:00 | INFO | "),
        &|n| format!("{} ", 9646 + n % 2),
        &|n| format!("[I 2026-11-27 15:40:{n:02},842] "),
        &|n| format!("INFO 11-27 15:40:{n:02} [trainer.py:12] "),
        &|n| format!("INFO:2026-11-27 15:40:{n:02}: "),
        &|n| format!("[default0]:2026-11-27 15:40:{n:02} | INFO | "),
        &|n| format!("(trainer pid=9646) 2026-11-27 15:40:{n:02} "),
    ];
    for prefix in prefixes {
        let counted = log(prefix, &["lr 0.1, 5 groups", "Epoch N: loss 0.5", "saved checkpoint"])
            .unwrap_or_else(|| panic!("{}", prefix(1)));
        assert!(counted.0.contains("Epoch (?P<epoch>") && counted.1 == [100; 4], "{counted:?}");
        let recurs = log(prefix, &["lr falls", "test loss 0.5"]).unwrap_or_else(|| panic!("{}", prefix(1)));
        assert!(recurs.0.ends_with("lr falls$") || recurs.0.contains("test loss "), "{recurs:?}");
        assert_eq!(recurs.1, [100; 4], "{recurs:?}");
    }
}

#[test]
fn a_description_of_a_bar_may_have_numbers_that_change() {
    // torchtune, and a loss that is written with an exponent once.
    let bar =
        |n: u32, loss: &str| (0.5 * f64::from(n), format!("1|{n}|Loss: {loss}:   {n}%|#     | {n}/100 [00:01<00:30,  2.00it/s]"));
    let read = |losses: [&str; 5]| {
        let drawn: Vec<(f64, String)> = (1..).zip(losses).map(|(n, loss)| bar(n, loss)).collect();
        best(&output(&drawn.iter().map(|(at_s, line)| (*at_s, line.as_str())).collect::<Vec<_>>()))
    };
    let (described, epochs) = read(["0.91", "0.85", "0.7", "0.61", "0.5"]).expect("a bar");
    assert_eq!(
        (described.starts_with(r"^[\d.:,]+\|[\d.:,]+\|Loss: [\d.:,]+:\s*\d+%"), epochs),
        (true, vec![50; 4]),
        "{described}"
    );
    let (any, epochs) = read(["0.91", "8.5e-01", "0.7", "0.61", "0.5"]).expect("a bar");
    assert_eq!((any.starts_with(r"^.*?\b\d+%"), epochs), (true, vec![50; 4]), "{any}");
}

#[test]
fn of_a_duration_of_two_numbers_none_is_taken_for_the_whole() {
    let lines = output(&[
        (58.0, "Epoch: 01 | Epoch Time: 0m 58s"),
        (116.0, "Epoch: 02 | Epoch Time: 0m 58s"),
        (174.0, "Epoch: 03 | Epoch Time: 0m 58s"),
    ]);
    assert_eq!(best(&lines), Some((r"^Epoch: (?P<epoch>\d+)\b".into(), vec![5800, 5800])));
}

#[test]
fn nothing_is_found_where_nothing_counts() {
    assert_eq!(best(&output(&[(1.0, "loading"), (2.0, "3 layers"), (3.0, "ready")])), None);
    assert_eq!(best(&[]), None);
    // A version and a date are no steps.
    assert_eq!(best(&output(&[(1.0, "torch 2.9.1"), (1.1, "cuda 12.8"), (1.2, "2026-11-27 is today")])), None);
}

#[test]
fn whatever_a_script_prints_is_looked_at_in_bounded_time() {
    let lines: Vec<OutputLine> =
        (0..20_000).map(|n| OutputLine { at_ns: n * 1_000_000, text: format!("{} {n} value {}", n % 977, n * 7 % 13) }).collect();
    find_progress(&lines, 0);
}

/// nanoGPT beside two other processes on two cores.
#[test]
fn steps_that_are_halted_at_times_are_found_and_lines_that_come_twice_are_not() {
    let at = |step_ms: &dyn Fn(u64) -> u64| -> Vec<OutputLine> {
        let ends = (0..40).scan(0, |ms, n| {
            *ms += step_ms(n);
            Some(*ms)
        });
        ends.enumerate()
            .map(|(n, ms)| OutputLine { at_ns: ms * 1_000_000, text: format!("iter {n}: loss 2.2, mfu 0.00%") })
            .collect()
    };
    let halted = at(&|n| if n % 9 == 8 { 480 } else { 40 });
    assert_eq!(best(&halted).map(|found| found.0).as_deref(), Some(r"^iter (?P<epoch>\d+)\b"));
    assert_eq!(best(&at(&|n| if n % 2 == 0 { 480 } else { 4 })), None);
}

/// As pytorch/examples print them: word_language_model/main.py, with numbers that are padded, and mnist/main.py.
#[test]
fn steps_that_begin_again_with_each_epoch_are_counted_by_their_lines() {
    let of = |line: &dyn Fn(u64, u64) -> String| {
        let lines = (1..9).map(|n| OutputLine { at_ns: n * 1_000_000_000, text: line(1, n) });
        let (pattern, epochs) = best(&lines.collect::<Vec<_>>()).expect("they count");
        let found = Regex::new(&pattern).expect("a pattern");
        assert!((1..3).all(|epoch| (1..13).all(|n| found.is_match(&line(epoch, n)))), "{pattern}");
        (pattern, epochs.len())
    };
    let padded = of(&|epoch, n| format!("| epoch {epoch:3} | {:5}/  124 batches | lr 20.00 | ms/batch 184.95", 10 * n));
    assert_eq!(padded, (r"^\| epoch\s*[\d.:,]+ \|\s*\d+\b".into(), 7));
    let mnist = of(&|epoch, n| format!("Train Epoch: {epoch} [{}/60000 ({n}%)]\tLoss: 2.300", 640 * n));
    assert_eq!(mnist, (r"^Train Epoch: [\d.:,]+ \[\d+\b".into(), 7));
}

#[test]
fn a_pattern_is_written_as_toml_reads_it() {
    let found = |pattern: &str, preset| {
        let found = FoundProgress {
            pattern: pattern.into(),
            preset,
            names_epochs: true,
            lines: Vec::new(),
            first_s: 0.0,
            last_s: 0.0,
            epochs_s: Vec::new(),
        };
        found.toml()
    };
    assert_eq!(found("x", Some("keras")), "preset = \"keras\"");
    for pattern in [r"^Epoch (?P<epoch>\d+)\b", r"^it's \d+", "a\tb", r#"^"x" \d"#] {
        let text = found(pattern, None);
        let table: toml::Table = text.parse().expect("TOML");
        assert_eq!(table["pattern"].as_str(), Some(pattern), "{text}");
    }
}
