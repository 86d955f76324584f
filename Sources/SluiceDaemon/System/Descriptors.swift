import Glibc

/// The process's limit on open files: a connection is one.
enum Descriptors {
  /// Raises the soft limit to the hard one. Returns what it is then.
  static func raiseLimit() -> UInt64 {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard unsafe getrlimit(resource, &limit) == 0 else { return 0 }
    if limit.rlim_cur < limit.rlim_max {
      var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
      if unsafe setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return UInt64(limit.rlim_cur)
  }
}
