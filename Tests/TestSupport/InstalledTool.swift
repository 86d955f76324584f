import Glibc

/// Programs that tests use when they are there.
public enum InstalledTool {
  /// The first of these that is there; nil for none.
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
