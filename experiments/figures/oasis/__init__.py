"""The figures of the OASiS paper (INFOCOM 2018, section V), one module each."""
