// Who imports this needs no other name for the client itself.
@_exported import SluiceClient
