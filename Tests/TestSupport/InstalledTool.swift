import Glibc

/// Programs that tests use if installed.
public enum InstalledTool {
  /// The first of these paths that exists; nil if none does.
  static func first(_ paths: String...) -> String? { paths.first { access($0, X_OK) == 0 } }
}

/// Prometheus' own check of metrics.
public enum Promtool {
  public static var path: String? { InstalledTool.first("/usr/bin/promtool", "/usr/local/bin/promtool") }
}

/// A browser without a window.
public enum Chromium {
  public static var path: String? { InstalledTool.first("/usr/bin/chromium", "/usr/local/bin/chromium") }
}
