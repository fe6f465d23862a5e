"""The formats of checkpoint folders, one per file; `presets.open_preset` tells them apart."""
