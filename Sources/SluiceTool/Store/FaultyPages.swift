import Glibc
import SluiceCommand

/// Says what it means when reading a store ends the process: files are read by way of memory, and a page that the disk can't read, or that leads elsewhere,
/// is found out by the processor.
enum FaultyPages {
  static func explain() {
    for number in [SIGBUS, SIGSEGV, SIGABRT] {
      _ = signal(number) { _ in
        // Nothing but system calls may be made here.
        let message: StaticString =
          "sluice: the store's file is damaged in its structure, and can't be read on; put a backup in its place\n"
        _ = unsafe Glibc.write(STDERR_FILENO, message.utf8Start, message.utf8CodeUnitCount)
        _exit(ExitCode.failure.rawValue)
      }
    }
  }
}
