/// What the program counts besides its broker.
struct ProgramNumbers: Hashable {
  var droppedLogLines = 0
  /// Those who couldn't watch the events because there were too many.
  var refusedWatchers = 0

  func write(to text: inout MetricsText) {
    text.family(
      "sluice_log_dropped_lines", .counter,
      "Lines that were left out of the log because nobody read it in time.")
    text.sample(UInt64(droppedLogLines))
    text.family(
      "sluice_admin_refused_watchers", .counter,
      "Visitors who couldn't watch the events because there were too many.")
    text.sample(UInt64(refusedWatchers))
  }
}
