// A program that imports this module needs no import of the client itself.
@_exported import SluiceClient
