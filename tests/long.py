"""Which tests are for the night: those that a quicker one says nearly the same as, and the longest.

By day there are ten minutes.
"""

from __future__ import annotations

#: Of the tests in a browser these are quick enough for every time; the rest is for the night.
SEEN_ALWAYS = ("test_report", "test_app", "test_guard", "test_boxes", "test_hostile_pages")
#: Families that differ in one value, and take long: every third of each is by day.
THIRD = (
    "compat/test_private_names.py::test_without_an_attribute_a_cluster_computes",
    "findings/test_local_schedulers.py::test_no_rule_fails_on_a_local_scheduler",
    "layers/test_lines_of_futures.py::test_tasks_of_map_are_of_its_line_and_no_others",
    "objects/test_planted.py::test_a_clean_program_has_none",
    "objects/test_planted.py::test_a_planted_object_is_named",
    "reliability/test_shown.py::test_every_loss_is_in_every_face",
    "replay/test_irregular.py::test_programs_of_all_kinds_are_replayed",
    "runtime/test_hooks.py::test_no_error_of_ours_reaches_a_computation_on_a_local_scheduler",
)
#: Of these families the rows that begin so are by day.
BY_DAY = {
    "runtime/test_hooks.py::test_no_error_of_ours_reaches_a_computation_on_a_cluster": (
        "Ring.emit", "Shipper._pack", "SchedulerProbe._note", "Relay.send]", "WorkerProbe._note",
        "WorkerProbe._begin", "Outbox.send", "Membership.ping", "awaited.keys",
    ),
    "collectors/test_hostile.py::test_bomb_takes_neither_time_nor_memory": ("rows",),
    "reliability/test_concurrent.py::test_sessions_neither_wait_for_one_another_nor_mix": (
        "one after the other, and overlapping in any order",
    ),
    "findings/test_clean.py::test_nothing_above_a_note_is_found_in_a_clean_program": (
        "array_least_squares", "array_smoothing", "dataframe_groupby", "delayed_tree",
        "futures_search",
    ),
    "ground_truth/test_waiting.py::test_what_sleeps_is_waiting": (
        "separate-optimizer", "separate-task",
    ),
    "compare/test_chance.py::test_false_alarms_are_as_rare_as_is_said": ("0% stood still-False",),
    "faces/test_run.py::test_output_that_cannot_be_written_stops_before_the_script": (
        "no/such/folder/x",
    ),
    "gil/test_harm.py::test_a_py_spy_that_does_not_work_is_said": ("refused", "never attaches"),
    "gil/test_truth.py::test_contention_is_within_5_points_of_the_truth": ("cluster-0.6",),
    "notebook/test_cells.py::test_a_request_that_makes_no_sense_gets_one_line": (
        "%stageprof --bad 1", "%stageprof",
    ),
    "ui/test_report.py::test_nothing_is_wider_than_the_page": ("390-dark",),
    "replay/test_real.py::test_a_cause_taken_away_on_threads_saves_what_was_foretold": (
        "every task slow",
    ),
}  # fmt: skip
#: Tests of a file that are for the night, by how their names go on after "test_".
LONG = {
    "check/test_check.py": ("a_rule_that_is_off",),
    "check/test_command.py": (
        "a_check_names_what_is_wrong_before_it_runs_and_nothing_after_the_fix[complex-object]",
        "data_that_goes_into_a", "only_graver_findings_than_allowed", "other_forms_have_stdout",
        "the_script_ends_where_it", "what_the_script_itself_raises", "with_all_the_script_goes",
    ),
    "ci/test_samples_ci.py": ("github_keeps",),
    "collectors/test_hostile.py": ("mutated_recording_is_judged",),
    "collectors/test_impossible_times.py": ("the_account_adds_up_and",),
    "compare/test_command.py": ("a_run_of_recordings_is",),
    "compare/test_many.py": (
        "a_cluster_that_somebody_else", "a_cluster_without_workers", "a_comparison_is_the_same",
        "a_task_does_not_wait", "it_does_not_record",
    ),
    "compare/test_others.py": ("programs_that_want",),
    "compare/test_page.py": ("the_page_asks", "the_page_says_what_was"),
    "compat/test_private_names.py": ("stageprof_is_imported_and_records",),
    "faces/test_cli.py": ("attach_without_a_cluster_says",),
    "faces/test_moved.py": (
        "a_reader_that_closes", "a_report_is_made_twice", "a_report_replaces_a_page",
        "a_rule_that_is_off", "reports_that_are_written_at",
    ),
    "faces/test_room.py": ("comparing_reads",),
    "faces/test_run.py": (
        "child_processes_find_the_main", "exception_is_shown_as_python", "exit_status_is_kept",
        "folder_changed", "forked_child_leaves", "live_line_leaves_the_program", "no_color",
        "no_gil_watches_nobody", "no_summary", "program_sees_what_python",
        "the_program_may_follow_two", "two_dashes_after_a_text", "what_outlives_the_program_finds",
    ),
    "findings/test_cold_import.py": ("printed_code_imports",),
    "findings/test_column_chunks_for_training.py": ("the_fix_puts",),
    "findings/test_commands.py": ("rule_of_an_installed",),
    "findings/test_complex_object.py": ("many_small_objects_in_a",),
    "findings/test_embedded_object.py": ("frame_in_a_real_graph",),
    "findings/test_gc_pressure.py": ("the_printed_code",),
    "findings/test_groups_one_by_one.py": ("it_is_shown_instead",),
    "findings/test_idle_workers.py": (
        "pieces_that_p2p_passed_on", "tasks_that_are_all_to_be", "the_fix_puts",
    ),
    "findings/test_large_graph.py": ("what_from_map_calls",),
    "findings/test_local_schedulers.py": ("many_pieces_of_unknown_size",),
    "findings/test_pieces_per_thread.py": ("the_fix_cuts_arrays", "the_fix_gives_every_worker"),
    "findings/test_read_bandwidth.py": ("waiting_for_the_gil_is",),
    "findings/test_repeated_scatter.py": ("a_table_that_a_loop_scatters_is_named",),
    "findings/test_small_calls.py": ("a_loop_of",),
    "findings/test_spilling.py": ("the_fix_runs",),
    "findings/test_threads_below_cpus.py": ("a_real_worker",),
    "findings/test_unpersisted_training_data.py": ("the_fix_keeps",),
    "findings/test_upstream.py": (
        "of_many_pieces_that_are_cut_further", "pieces_of_a_product_are_fewer",
        "pieces_that_a_call_gives_are_fewer_if_a_call_gives_several[called-read",
        "pieces_that_a_call_gives_are_fewer_if_a_call_gives_several[filtered-of",
        "pieces_that_are_cut", "pieces_that_are_made", "pieces_that_are_taken_from",
    ),
    "gil/test_faces.py": ("no_rows_make_it_raise",),
    "gil/test_harm.py": (
        "64_threads", "a_forked_child_does_not", "a_forked_child_leaves", "a_py_spy_that_is",
        "a_stopped_process_is_watched", "a_watch_that_may_not",
        "neither_outlives_a_process_that_ends", "py_spy_does_not_outlive",
    ),
    "gil/test_several_processes.py": ("each_worker_has_its_own_number[1]",),
    "gil/test_several_recordings.py": ("one_within",),
    "gil/test_truth.py": (
        "a_pure_python_thread_alone", "numpy_and_sleep",
        "the_holder_in_c_is_named_while_others_run[threads]", "the_line_that_holds",
        "two_python_threads_share_it_and_each_waits_for_the_other",
    ),
    "gil/test_unwinding.py": (
        "a_recording_within_another", "nothing_outlives", "py_spy_does_not_outlive",
        "py_spy_is_asked", "why_there_are_no_c_frames_is_said_and_those_of_python_remain[deaf",
    ),
    "ground_truth/test_communication.py": ("a_slow_link",),
    "ground_truth/test_construction.py": (
        "fifty_thousand", "slow_meta_inference_locally[processes]", "slow_meta_inference_on_a",
        "slow_tokenize_locally[processes",
    ),
    "ground_truth/test_counts.py": ("more_workers",),
    "ground_truth/test_execution.py": (
        "a_slow_spill", "queueing_is_execution_locally", "spilling_", "the_first_import_",
    ),
    "ground_truth/test_lines.py": ("array_layers", "lines_on_local_schedulers[processes"),
    "ground_truth/test_scheduling.py": ("ordering_on_a_cluster", "ordering_on_the_threaded_"),
    "ground_truth/test_serialization.py": ("slow_pickling_on_the_process",),
    "layers/test_stages.py": (
        "a_slow_function_is_its_lines",
        "a_big_dependency", "a_slow_object_is_its_lines_at", "a_slow_object_is_its_lines_on",
        "a_slow_optimizer_is_its_collections_on_a",
        "a_slow_optimizer_is_its_collections_on_threads", "a_slow_result",
        "a_slow_rewrite_is_its_expressions_on_a", "a_slow_rewrite_is_its_expressions_on_threads",
        "many_tasks_are_scheduling_of_their_line_on_threads",
        "slow_meta_inference_is_its_lines_on_a", "slow_meta_inference_is_its_lines_on_threads",
        "twenty_thousand",
    ),
    "notebook/test_cells.py": (
        "a_cell_that_is_one", "a_line_may_be_a", "await_works[%%", "await_works[y =",
        "the_gil_is_watched_unless_it_is_not_wanted[--gil]",
    ),
    "notebook/test_terminal.py": ("the_live_line", "what_the_tasks_print"),
    "objects/test_hops.py": (
        "each_hop_has_its_own_seconds[1", "the_load_of_the_message", "the_process_scheduler",
    ),
    "objects/test_looking.py": ("what_the_user_deletes",),
    "objects/test_planted.py": (
        "a_clean_program_has_none[many_small", "a_planted_object_is_named[global_argument",
    ),
    "preload/test_dask_command.py": ("it_answers_as_stageprof_does[no file]",),
    "preload/test_flight.py": (
        "a_scheduler_that_ends", "a_task_that_runs_since", "a_worker_that_joins_later",
    ),
    "privacy/test_modes.py": ("a_report_and_one", "an_export_replaces", "pages_and_texts"),
    "privacy/test_redaction.py": ("nor_does_a_redacted_report",),
    "profiles/test_native.py": ("compression",),
    "profiles/test_planted.py": (
        "tasks_of_the_threads",
        "a_construction", "an_idle_scheduler", "counted_calls", "tasks_and_the_scheduler_of",
        "the_loop_of_a_local", "two_recordings_at_once",
    ),
    "pytest_plugin/test_beside.py": (
        "a_marker_that_makes_no", "coroutines_run", "on_a_cluster_a_failure", "workers_of_xdist",
        "workers_that_run_the_same",
    ),
    "pytest_plugin/test_options.py": ("a_folder_of_tests",),
    "pytest_plugin/test_recording.py": ("only_a_test_beyond", "there_is_a_recording"),
    "pytest_plugin/test_subtests.py": ("a_test_with_a_failed", "each_test_has_one_row"),
    "reliability/test_hostile_pages.py": ("the_first_page",),
    "reliability/test_impossible_numbers.py": ("a_sample_that_cannot_be",),
    "reliability/test_killed_recorder.py": (
        "what_was_acknowledged_is_there_and_the_rest_is_said_to_be_missing[0]",
        "what_was_acknowledged_is_there_and_the_rest_is_said_to_be_missing[1",
    ),
    "reliability/test_killed_workers.py": (
        "a_worker_that_ends_with", "what_was_kept_of_a", "what_was_kept_of_the",
    ),
    "reliability/test_loaders.py": ("no_folder_is_left",),
    "reliability/test_noise.py": ("a_broken_hook",),
    "reliability/test_outputs.py": ("pytest_shows",),
    "reliability/test_removal.py": (
        "a_hundred_starts_and_stops_leave_the_process_as_it_was[threads",
    ),
    "reliability/test_tracebacks.py": (
        "a_task_that_fails_locally_has_the_traceback_that_it_has_without_us[processes",
    ),
    "replay/test_depends.py": ("a_task_that_needs_very",),
    "replay/test_irregular.py": ("local_schedulers_are_replayed[processes",),
    "replay/test_real.py": (
        "a_cause_taken_away_on_a",
        "more_threads_of_a_local_scheduler", "a_result_that_need_not",
    ),
    "runtime/test_async_programs.py": (
        "what_coroutines_await_is_accounted_for_as_what_blocks[one_by_one",
    ),
    "runtime/test_bootstrap.py": ("a_worker_with_a_broken",),
    "runtime/test_clients.py": (
        "a_client_whose_loop_has", "a_cluster_that_was_not", "a_task_that_leaves",
        "clients_one_after_another", "each_of_two_sessions_on", "of_a_client_that_is",
        "tasks_of_two_clients",
    ),
    "runtime/test_cluster.py": (
        "a_killed_worker_comes_back", "a_retired_worker_loses_nothing", "a_worker_that_is_stopped",
        "a_worker_that_joins_under", "many_cycles_leave", "what_wrappers_take",
        "when_the_scheduler_is_killed",
    ),
    "runtime/test_ending.py": (
        "a_program_keeps_its_exit_status_and_the_summary_says_how_it_ended[raise",
        "a_program_keeps_its_exit_status_and_the_summary_says_how_it_ended[sys.exit('",
        "a_program_keeps_its_exit_status_and_the_summary_says_how_it_ended[sys.exit(3",
        "an_interrupted_program_says_so",
    ),
    "runtime/test_failures.py": ("a_task_that_fails_on_a_local_scheduler_is_named[processes",),
    "runtime/test_fork.py": (
        "a_forked_child_leaves_the_parents_recording_alone[sync]",
        "the_processes_scheduler_neither_hangs_nor_loses_a_task[forkserver",
        "the_processes_scheduler_neither_hangs_nor_loses_a_task[spawn",
    ),
    "runtime/test_hooks.py": (
        "a_worker_of_its_own_process_survives_a_broken_hook[setup]", "nor_on_the_scheduler_of",
    ),
    "runtime/test_hosts.py": (
        "a_client_closes_at_once", "a_cluster_that_could_not", "a_forked_childs", "a_running_task",
        "a_scheduler_under_two_addresses", "a_session_that_begins_again",
    ),
    "runtime/test_kept_by_the_loop.py": ("on_a_real_cluster",),
    "runtime/test_memory_of_workers.py": ("the_growth_around",),
    "runtime/test_other_loops.py": ("two_clients",),
    "runtime/test_overload.py": ("a_slow_hook_on_the", "a_stalled_recorder"),
    "runtime/test_relay.py": ("a_recording_says_whose",),
    "runtime/test_results.py": ("the_scheduler_of_processes_gives_the_same[some",),
    "runtime/test_samples_of_places.py": ("scheduler_workers_and_client", "what_a_worker_holds"),
    "runtime/test_sent.py": ("after_a_recording",),
    "runtime/test_stack.py": ("a_librarys_python",),
    "runtime/test_underway.py": ("calls_are_under_way",),
    "test_samples.py": (
        "active_client", "bad_argument", "program_that_needs", "result_is_the_same_with",
        "small_program_on_a_cluster_gives_recorded_what_it_gives_without[boosting",
    ),
    "test_template.py": ("another_environment", "what_has_ended"),
    "ui/test_app.py": (
        "a_finding_leads_to_its_tasks", "a_stage_is_selected", "a_stage_that_is_let",
        "pictures_say_what_they_show", "search_finds", "two_who_look",
    ),
    "ui/test_growth.py": ("what_grew",),
    "ui/test_live.py": ("lost_and_doubled", "no_message_is_larger"),
    "ui/test_live_pages.py": ("pages_of_older_snapshots",),
    "ui/test_policy.py": ("a_report_names",),
    "ui/test_report.py": ("a_report_is_replaced", "pointing", "zooming"),
    "ui/test_source.py": ("a_report_and_a_notebook",),
    "ui/test_store.py": ("a_second_session", "what_a_page_links"),
    "ui/test_workers_page.py": ("all_figures_share", "the_page_shows_whatever_there_is[many"),
}  # fmt: skip
#: Files of which all are: not even imported where they are left out.
LONG_FILES = (
    "ci/test_own_samples.py",
    "compare/test_truth.py",
    "findings/test_frameworks.py",
    "findings/test_pairs.py",
    "gil/test_processes.py",
    "nightly/test_dasks_own.py",
    "notebook/test_jupyterlab.py",
    "notebook/test_tour.py",
    "objects/test_budget.py",
    "profiles/test_pages.py",
    "reliability/test_chaos.py",
    "reliability/test_exits.py",
    "reliability/test_joins.py",
    "reliability/test_killed_programs.py",
    "reliability/test_load.py",
    "reliability/test_not_instrumented.py",
    "reliability/test_owner_dies.py",
    "reliability/test_restarts.py",
    "reliability/test_stalls.py",
    "reliability/test_writing.py",
    "ui/test_axe.py",
    "ui/test_buttons.py",
    "ui/test_comparison_report.py",
    "ui/test_pages_of_processes.py",
    "ui/test_two_apps.py",
)
